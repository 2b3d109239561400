// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package meta holds the labels, annotations, condition types and reasons that several binaries
// share. It has no logic.
package meta

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Labels of the objects that functions compose and the provider creates. Children are found by
// these labels rather than Crossplane's, which differ between claims and namespaced composites.
const (
	// LabelTailnet names the TailscaleTailnet that an object belongs to.
	LabelTailnet = "gateway.tailscale.com/tailnet"

	// LabelEndpoints names the TailscaleEndpoints that an object belongs to.
	LabelEndpoints = "gateway.tailscale.com/endpoints"

	// LabelServices names the TailscaleServices that an object belongs to.
	LabelServices = "gateway.tailscale.com/services"

	// LabelDirection is ingress or egress.
	LabelDirection = "gateway.tailscale.com/direction"

	// LabelProxySet marks every ProxySet with "true", so that a function can
	// require those of a namespace.
	LabelProxySet = "gateway.tailscale.com/proxy-set"

	// LabelMachine names the Machine that owns a Secret.
	LabelMachine = "gateway.tailscale.com/machine"

	// LabelMachineSet names the MachineSet that owns a Machine, a StatefulSet or
	// a PodDisruptionBudget.
	LabelMachineSet = "gateway.tailscale.com/machine-set"

	// LabelSecretType is SecretTypeState, SecretTypeConfig, SecretTypeACMEAccount or
	// SecretTypeExtension.
	LabelSecretType = "gateway.tailscale.com/secret-type"

	// LabelBackup marks with "true" the objects that a backup needs: what they hold is neither in
	// the tailnet nor in the objects that users write.
	LabelBackup = "gateway.tailscale.com/backup"

	// LabelMetrics marks a Service whose endpoints serve metrics with "true".
	LabelMetrics = "gateway.tailscale.com/metrics"

	// LabelProvision marks with "true" a ServiceAttachment that needs a change of its endpoints
	// before agents can use it: a port for an egress target, or permission to read a Secret.
	// Other attachments do not run the endpoints' function.
	LabelProvision = "gateway.tailscale.com/provision"

	// LabelProxyGroup names the TailscaleProxyGroup that an object belongs to.
	LabelProxyGroup = "gateway.tailscale.com/proxy-group"

	// LabelGateway names the TailscaleGateway that an object belongs to.
	LabelGateway = "gateway.tailscale.com/gateway"

	// LabelExtension is on the ServiceAccount of a dedicated extension, and names its
	// TailscaleGateway. The provider creates the Secrets of such an account.
	LabelExtension = "gateway.tailscale.com/extension"

	// LabelGatewayNamespace is the namespace of the TailscaleGateway of a generated route: such
	// routes may be in another namespace.
	LabelGatewayNamespace = "gateway.tailscale.com/gateway-namespace"

	// LabelGatewayTailnet names the tailnet, among those of a TailscaleGateway, that
	// an object is for.
	LabelGatewayTailnet = "gateway.tailscale.com/gateway-tailnet"

	// LabelGenerated marks objects that the extension created for a TailscaleGateway. Its value
	// is ingress or egress.
	LabelGenerated = "gateway.tailscale.com/generated"

	// LabelEndpoint names the endpoint, among those of a TailscaleEndpoints, that
	// an object is for.
	LabelEndpoint = "gateway.tailscale.com/endpoint"

	// LabelAutoProvisioned marks endpoints made from a template with "true".
	LabelAutoProvisioned = "gateway.tailscale.com/auto-provisioned"
)

// Values of LabelSecretType.
const (
	SecretTypeState       = "state"
	SecretTypeConfig      = "config"
	SecretTypeACMEAccount = "acme-account"
	SecretTypeExtension   = "extension"
)

// SecretACMEAccount is the name of the Secret with the ACME account of a namespace's proxies.
const SecretACMEAccount = "tailscale-gateway-acme-account"

// AnnotationOwner is on every Tailscale Service that the provider created. Its value is
// CLUSTER-ID/NAMESPACE/NAME of the VIPService.
const AnnotationOwner = "gateway.tailscale.com/owner"

// AnnotationDeletionPolicy is on a Tailscale Service that stays when its VIPService is deleted. Its
// value is RetainPolicy. It informs people and the search for orphans; the VIPService decides.
const AnnotationDeletionPolicy = "gateway.tailscale.com/deletion-policy"

// RetainPolicy is the value of AnnotationDeletionPolicy.
const RetainPolicy = "Retain"

// AnnotationNodeID is on a Machine: the node ID of its device, as the provider found it. Proxy
// pods cannot write it, unlike the status.
const AnnotationNodeID = "gateway.tailscale.com/node-id"

// AnnotationClusterID is on a Machine with a device: the cluster ID of the provider config when the
// provider found the device. In a backup it shows which cluster the Machine comes from.
const AnnotationClusterID = "gateway.tailscale.com/cluster-id"

// Annotations on a managed resource, or on a provider config for all of its resources. They say what
// to do with resources that are recorded in another tailnet than that of the config. The value is a
// name of the config's tailnet, as the condition says it, so that it permits no later change.
const (
	// AnnotationSameTailnet says that it is the tailnet that is recorded.
	AnnotationSameTailnet = "gateway.tailscale.com/same-tailnet"

	// AnnotationMoveToTailnet says that it is another tailnet: what the resource made stays where it
	// is, and the resource is managed again.
	AnnotationMoveToTailnet = "gateway.tailscale.com/move-to-tailnet"
)

// AnnotationRestart is on the config Secret of a Machine: when the provider last asked the pod's
// agent to have the tailscale container restarted.
const AnnotationRestart = "gateway.tailscale.com/restart"

// NodeIDOf returns the node ID of a Machine's device, as the provider found it, or "". Code
// that acts on a device must not use the status, because pods can write it.
func NodeIDOf(machine metav1.Object) string { return machine.GetAnnotations()[AnnotationNodeID] }

// AnnotationApplied is a hash of the fields of an object that the provider last applied, to
// detect fields that it must remove.
const AnnotationApplied = "gateway.tailscale.com/applied"

// FinalizerManaged is the finalizer of every managed resource
// (crossplane-runtime pkg/reconciler/managed, FinalizerName).
const FinalizerManaged = "finalizer.managedresource.crossplane.io"

// ConfigSecretSuffix is appended to a Machine's name to get its config Secret's.
const ConfigSecretSuffix = "-config"

// ConfigKey is the key of tailscaled's config in a config Secret. Containerboot
// takes the highest cap-N that it knows; 106 is what Tailscale's operator writes
// (tailscale.com cmd/k8s-operator/proxygroup.go, pgMinCapabilityVersion).
const ConfigKey = "cap-106.hujson"

// Keys of an OAuth client's Secret.
const (
	SecretKeyClientID     = "client_id"
	SecretKeyClientSecret = "client_secret"
)

// SecretKeyAPIKey is the key of an API access token's Secret, unless a provider
// config says otherwise.
const SecretKeyAPIKey = "api_key"

// SecretKeySigningKey is the key of a Secret with a signing key of tailnet lock, unless a provider
// config names another one.
const SecretKeySigningKey = "signing_key"
