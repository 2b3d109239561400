// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package extensionpods plans the extension server of Envoy Gateway that serves only one Gateway: who
// may have one, and its pods with everything that they need.
package extensionpods

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/front"
	"github.com/tailscale-gateway/tailscale-gateway/internal/address"
	"github.com/tailscale-gateway/tailscale-gateway/internal/allow"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

// Facts are what a Gateway's separate extension follows from.
type Facts struct {
	Owner compose.Owner

	// Spec is spec.extensionServer. It is nil if no separate extension is wanted.
	Spec *gatewayv1alpha1.ExtensionServer

	Gateway *front.Gateway

	// Verdicts report whether each tailnet of the spec may be used.
	Verdicts []compose.TailnetVerdict

	// InstalledImage is the image of extensions that set none.
	InstalledImage string

	// Deployment is the observed Deployment, and EDS the observed Service for endpoints. They are nil
	// if there are none.
	Deployment *appsv1.Deployment
	EDS        *corev1.Service
}

// A Plan is about the separate extension of a Gateway. It is empty if none is wanted.
type Plan struct {
	// Extension is nil unless it is wanted and may run.
	Extension *Extension

	// Refused is a condition with the reason for which a wanted extension may not run.
	Refused *compose.Condition
}

// An Extension is an extension server of Envoy Gateway that serves only one Gateway. Its objects
// match those of the installed extension's chart, except for its permissions: they are limited to
// the namespace, so that no user gains permissions beyond the namespace.
type Extension struct {
	Facts

	// Name is the name of all its objects, except for suffixes.
	Name string
}

// Chart is the name of the chart of the extension that is installed for the cluster, and the label of
// the pods of extensions.
const Chart = "tailscale-gateway-extension"

// defaultReplicas is the schema's default for requests that did not pass the API server.
const defaultReplicas = 2

// Ports of an extension, and their names.
const (
	portHooks   = 5005
	portEDS     = 5006
	portMetrics = 8080

	nameHooks   = "hooks"
	nameEDS     = "eds"
	nameMetrics = "metrics"

	// flagEDSTarget is the flag with the address that Envoys dial.
	flagEDSTarget = "--eds-target="

	// Suffixes of the names of Services.
	suffixHooks   = ""
	suffixEDS     = "-eds"
	suffixMetrics = "-metrics"

	// Suffixes of the names of roles and their bindings.
	suffixRights = ""
	suffixLease  = "-lease"
)

// New returns the extension that is wanted and may run, or why it may not.
func New(f Facts) Plan {
	if f.Spec == nil {
		return Plan{}
	}
	if c := refused(f); c != nil {
		return Plan{Refused: c}
	}
	return Plan{Extension: &Extension{Facts: f, Name: names.Child(f.Owner.Name, "extension")}}
}

// refused returns a condition with the reason for which the Gateway must not have a
// dedicated extension. It is nil if it may. The extension runs with permissions that the author of
// the TailscaleGateway need not have, so it is never more than what somebody else permits: a Gateway
// of this namespace, a tailnet, and the installed image or one that a grant names.
func refused(f Facts) *compose.Condition {
	refuse := func(reason xpv2.ConditionReason, message string) *compose.Condition {
		return &compose.Condition{Status: compose.False, Reason: reason, Message: message}
	}
	if f.Gateway.Ref.Namespace != f.Owner.Namespace {
		return refuse(meta.ReasonOtherNamespace, "An extension of a Gateway's own reads one namespace: make the TailscaleGateway in namespace "+f.Gateway.Ref.Namespace+", or remove spec.extensionServer and use the installed extension")
	}
	if f.Gateway.Gateway == nil && f.Gateway.Open {
		c := f.Gateway.Valid()
		return refuse(c.Reason, "No extension runs without a Gateway. "+c.Message)
	}
	if f.Gateway.Gateway == nil {
		return refuse(meta.ReasonGatewayNotFound, fmt.Sprintf("No extension runs for Gateway %s, which does not exist; create it, or correct spec.gatewayRef", f.Gateway.Name()))
	}
	// One that runs stays, like proxies.
	if v := noTailnet(f.Verdicts); v != nil && f.Deployment == nil {
		return refuse(v.Reason, "No extension starts before a tailnet of spec.tailnets may be used. "+v.Message)
	}
	if v := imageViolation(f); v != nil {
		return refuse(meta.ReasonNotGranted, v.Error())
	}
	return nil
}

// noTailnet returns the first verdict if none of the tailnets may be used, and nil if there is one,
// or if the spec names none.
func noTailnet(verdicts []compose.TailnetVerdict) *compose.TailnetVerdict {
	if len(verdicts) == 0 || slices.ContainsFunc(verdicts, func(v compose.TailnetVerdict) bool { return v.Accepted }) {
		return nil
	}
	return &verdicts[0]
}

// imageViolation returns a violation for an image that no tailnet grants. Without a tailnet
// that may be used there is no grant.
func imageViolation(f Facts) *allow.ViolationError {
	const field = "spec.extensionServer.image"
	image := f.Spec.Image
	if image == "" || image == f.InstalledImage {
		return nil
	}
	var out *allow.ViolationError
	for _, verdict := range f.Verdicts {
		if verdict.Grant == nil {
			continue
		}
		v := verdict.Grant.ExtensionImage(field, image)
		if v == nil {
			return nil
		}
		out = cmp.Or(out, v)
	}
	return cmp.Or(out, &allow.ViolationError{Field: field, Problem: fmt.Sprintf("image %q is not the installed one; remove the field, or name a tailnet in spec.tailnets whose spec.allowedNamespaces.grants has the repository in extensionImages", image)})
}

// replicas returns how many pods are wanted.
func (e *Extension) replicas() int32 {
	return ptr.Deref(e.Spec.Replicas, defaultReplicas)
}

// ReadyReplicas returns how many of the wanted pods are ready.
func (e *Extension) ReadyReplicas() int32 {
	if e.Deployment == nil {
		return 0
	}
	return min(e.Deployment.Status.ReadyReplicas, e.replicas())
}

// Address returns the address for Envoy Gateway's configuration.
func (e *Extension) Address() string {
	return net.JoinHostPort(address.ServiceHost(e.Owner.Namespace, e.Name), strconv.Itoa(portHooks))
}

// references returns the objects that Envoy Gateway's configuration must reference in addition to
// the address, for a message: the extension answers only clients with a certificate that it issued.
func (e *Extension) references() string {
	clientSecret := "Secret " + e.Owner.Namespace + "/" + names.ExtensionClient(e.Name)
	if t := e.Spec.TLS; t != nil {
		return clientSecret + " as tls.clientCertificateRef, and as tls.certificateRef one whose tls.crt is what the certificate of Secret " + t.CertificateRef.Name + " chains to"
	}
	return clientSecret + " as tls.certificateRef and as tls.clientCertificateRef"
}

// Ready returns a condition that is True if a replica answers.
func (e *Extension) Ready() compose.Condition {
	if e.ReadyReplicas() > 0 {
		return compose.Condition{Status: compose.True, Reason: meta.ReasonExtensionServing, Message: "Extension " + e.Name + " answers at " + e.Address() + " for an Envoy Gateway whose configuration names it, with " + e.references()}
	}
	m := "Waiting for a pod of Deployment " + e.Name
	if t := e.Spec.TLS; t != nil {
		m += ", which needs Secret " + t.CertificateRef.Name + " of type kubernetes.io/tls, with the keys tls.crt, tls.key and ca.crt"
	}
	return compose.Condition{Status: compose.False, Reason: meta.ReasonExtensionNotReady, Message: m}
}

// edsTarget returns the address of the Service for endpoints, or that of the running Deployment
// while there is no Service: Crossplane deletes children that are omitted. It is empty if there is
// none. Nothing else of the Deployment stays, so that an image or a Secret that is no longer granted
// does not.
func (e *Extension) edsTarget() string {
	if e.EDS != nil && e.EDS.Spec.ClusterIP != "" {
		return net.JoinHostPort(e.EDS.Spec.ClusterIP, strconv.Itoa(portEDS))
	}
	if e.Deployment == nil {
		return ""
	}
	for _, c := range e.Deployment.Spec.Template.Spec.Containers {
		for _, a := range c.Args {
			if t, ok := strings.CutPrefix(a, flagEDSTarget); ok {
				return t
			}
		}
	}
	return ""
}

// selector returns the labels that select the pods. They are the chart's.
func (e *Extension) selector() map[string]string {
	return map[string]string{"app.kubernetes.io/name": Chart, "app.kubernetes.io/instance": e.Name}
}

// labels returns the labels of all objects of the extension.
func (e *Extension) labels() map[string]string {
	out := map[string]string{"app.kubernetes.io/part-of": "tailscale-gateway", meta.LabelGateway: e.Owner.Name}
	maps.Copy(out, e.selector())
	return out
}

// objectMeta returns the metadata of an object.
func (e *Extension) objectMeta(suffix string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: e.Name + suffix, Namespace: e.Owner.Namespace, Labels: e.labels()}
}

// args returns the arguments of the binary. It issues the certificates that the user does not
// supply.
func (e *Extension) args() []string {
	out := []string{fmt.Sprintf("--hooks-address=:%d", portHooks)}
	if e.tls() {
		out = append(out, "--hooks-tls="+tlsPath)
	}
	out = append(out, fmt.Sprintf("--eds-address=:%d", portEDS))
	if e.tls() {
		out = append(out, "--eds-tls="+tlsPath)
	}
	return append(out, "--make-certificates="+e.Name,
		flagEDSTarget+e.edsTarget(),
		"--eds-server-name="+address.ServiceHost(e.Owner.Namespace, e.Name+suffixEDS),
		"--xds-mode=GoogleGRPC", fmt.Sprintf("--observe-address=:%d", portMetrics), fmt.Sprintf("--drain=%ds", drainSeconds),
		"--only-gateway="+e.Gateway.Ref.Namespace+"/"+e.Gateway.Ref.Name)
}

// tls reports whether the user supplies a certificate for the servers.
func (e *Extension) tls() bool { return e.Spec.TLS != nil }

// image returns the image of the pods, which refused has permitted.
func (e *Extension) image() string { return cmp.Or(e.Spec.Image, e.InstalledImage) }
