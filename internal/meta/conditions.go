// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// Condition types. Crossplane's condition types (Ready, Synced, ...) are not included, because
// Crossplane drops them when a function sets them.
const (
	// TypeAuthenticated reports whether Tailscale accepts a tailnet's credential.
	TypeAuthenticated xpv2.ConditionType = "Authenticated"

	// TypeTailnetAccepted reports whether an object may use its tailnet.
	TypeTailnetAccepted xpv2.ConditionType = "TailnetAccepted"

	// TypeStatefulSetsReady reports whether all desired proxy pods are ready.
	TypeStatefulSetsReady xpv2.ConditionType = "StatefulSetsReady"

	// TypeDeletable is False on a Machine that its set does not list any more and cannot
	// delete.
	TypeDeletable xpv2.ConditionType = "Deletable"

	// TypeTailscaledTested reports whether tests run with the version of tailscaled that a Machine
	// runs. It is set only once a Machine runs another version.
	TypeTailscaledTested xpv2.ConditionType = "TailscaledTested"

	// TypeMachinesReady reports whether all desired machines are in the tailnet.
	TypeMachinesReady xpv2.ConditionType = "MachinesReady"

	// TypeEgressReady reports whether every egress target is reached by a proxy.
	TypeEgressReady xpv2.ConditionType = "EgressReady"

	// TypeNetworkReady reports whether Kernel networking works on the nodes of the pods. It exists
	// once a pod has reported a problem.
	TypeNetworkReady xpv2.ConditionType = "NetworkReady"

	// TypeDiscoverySuccessful reports whether the tailnet could be searched.
	TypeDiscoverySuccessful xpv2.ConditionType = "DiscoverySuccessful"

	// TypeProxyGroupReady reports whether a group has all its devices.
	TypeProxyGroupReady xpv2.ConditionType = "ProxyGroupReady"

	// TypeGatewayValid reports whether the Service in front of a Gateway was found.
	TypeGatewayValid xpv2.ConditionType = "GatewayValid"

	// TypeAccepted reports whether a spec can be fulfilled.
	TypeAccepted xpv2.ConditionType = "Accepted"

	// TypeEndpointsSelected reports whether a selector matches endpoints.
	TypeEndpointsSelected xpv2.ConditionType = "EndpointsSelected"

	// TypeVIPServiceReady reports whether the Tailscale Service exists and has an
	// address.
	TypeVIPServiceReady xpv2.ConditionType = "VIPServiceReady"

	// TypeAdvertised reports whether a machine hosts the Tailscale Service.
	TypeAdvertised xpv2.ConditionType = "Advertised"

	// TypeApproved reports whether the tailnet approves the machines as hosts.
	TypeApproved xpv2.ConditionType = "Approved"
)

// Reasons of Authenticated.
const (
	ReasonCredentialAccepted xpv2.ConditionReason = "CredentialAccepted"
	ReasonSecretNotFound     xpv2.ConditionReason = "SecretNotFound"
	ReasonSecretIncomplete   xpv2.ConditionReason = "SecretIncomplete"
	ReasonCredentialRejected xpv2.ConditionReason = "CredentialRejected"
	ReasonScopeMissing       xpv2.ConditionReason = "ScopeMissing"
	ReasonTailnetNotFound    xpv2.ConditionReason = "TailnetNotFound"
	ReasonAPIUnavailable     xpv2.ConditionReason = "APIUnavailable"

	// ReasonHostNotAllowed means that a ProviderConfig names a host to which the provider must
	// not send requests.
	ReasonHostNotAllowed xpv2.ConditionReason = "HostNotAllowed"
)

// Reasons of TailnetAccepted, in addition to ReasonTailnetNotFound and ReasonInvalidSelector.
const (
	ReasonAccepted            xpv2.ConditionReason = "Accepted"
	ReasonNamespaceNotAllowed xpv2.ConditionReason = "NamespaceNotAllowed"

	// ReasonNotGranted means that the tailnet allows the namespace, but not the object's spec.
	ReasonNotGranted xpv2.ConditionReason = "NotGranted"
)

// Reasons of StatefulSetsReady and MachinesReady.
const (
	ReasonAllReplicasReady     xpv2.ConditionReason = "AllReplicasReady"
	ReasonReplicasNotReady     xpv2.ConditionReason = "ReplicasNotReady"
	ReasonAllMachinesReady     xpv2.ConditionReason = "AllMachinesReady"
	ReasonMachinesNotReady     xpv2.ConditionReason = "MachinesNotReady"
	ReasonCannotPrepareMachine xpv2.ConditionReason = "CannotPrepareMachine"

	// ReasonCannotDeleteMachine means that an unlisted machine remains, with its device: the
	// provider may not delete it, or Tailscale refuses.
	ReasonCannotDeleteMachine xpv2.ConditionReason = "CannotDeleteMachine"

	// ReasonCannotApplyStatefulSet means that the API server refuses the StatefulSet, or that
	// the provider may not create it.
	ReasonCannotApplyStatefulSet xpv2.ConditionReason = "CannotApplyStatefulSet"
)

// Reasons of TailscaledTested.
const (
	ReasonVersionTested   xpv2.ConditionReason = "VersionTested"
	ReasonVersionUntested xpv2.ConditionReason = "VersionUntested"
)

// Reasons of EgressReady.
const (
	ReasonAllTargetsReady xpv2.ConditionReason = "AllTargetsReady"
	ReasonTargetsNotReady xpv2.ConditionReason = "TargetsNotReady"

	// ReasonNoEgressProxies means that there are targets, but no proxies for them.
	ReasonNoEgressProxies xpv2.ConditionReason = "NoEgressProxies"

	// ReasonNoFreePort means that all ports of the proxies are in use.
	ReasonNoFreePort xpv2.ConditionReason = "NoFreePort"

	// ReasonNoPorts means that an endpoint has no ports.
	ReasonNoPorts xpv2.ConditionReason = "NoPorts"

	// ReasonTargetsNotPlaced means that it is not known yet whether a target is in the tailnet.
	ReasonTargetsNotPlaced xpv2.ConditionReason = "TargetsNotPlaced"

	// ReasonNameMismatch means that the address of an endpoint has a name in the tailnet that
	// differs from the endpoint's.
	ReasonNameMismatch xpv2.ConditionReason = "NameMismatch"

	// ReasonFamilyNotServed means that a target is reached by only some of the address families
	// of its Service.
	ReasonFamilyNotServed xpv2.ConditionReason = "FamilyNotServed"

	// ReasonTargetsRefused means that two targets have the same name, or that there are too
	// many.
	ReasonTargetsRefused xpv2.ConditionReason = "TargetsRefused"
)

// Reasons of NetworkReady.
const (
	ReasonNetworkUsable xpv2.ConditionReason = "NetworkUsable"

	// ReasonNoTunDevice means that tailscaled cannot create its network interface.
	ReasonNoTunDevice xpv2.ConditionReason = "NoTunDevice"

	// ReasonNotForwarding means that the kernel does not forward the pod's packets.
	ReasonNotForwarding xpv2.ConditionReason = "NotForwarding"

	// ReasonForwardedPacketsDropped means that the cluster's network drops packets to Services
	// that the pod forwards.
	ReasonForwardedPacketsDropped xpv2.ConditionReason = "ForwardedPacketsDropped"
)

// Reasons of DiscoverySuccessful.
const (
	ReasonDiscovered     xpv2.ConditionReason = "Discovered"
	ReasonCannotDiscover xpv2.ConditionReason = "CannotDiscover"

	// ReasonTooManyDiscovered means that there are more matches than can be listed.
	ReasonTooManyDiscovered xpv2.ConditionReason = "TooManyDiscovered"
)

// ReasonNotRequested means that the spec does not use the feature of a condition any more.
const ReasonNotRequested xpv2.ConditionReason = "NotRequested"

// Reasons of EndpointsSelected, in addition to those of TailnetAccepted.
const (
	ReasonEndpointsSelected    xpv2.ConditionReason = "EndpointsSelected"
	ReasonEndpointsProvisioned xpv2.ConditionReason = "EndpointsProvisioned"
	ReasonNoEndpointsMatch     xpv2.ConditionReason = "NoEndpointsMatch"
	ReasonInvalidSelector      xpv2.ConditionReason = "InvalidSelector"
	ReasonMultipleTailnets     xpv2.ConditionReason = "MultipleTailnets"
)

// Reasons of ProxyGroupReady.
const (
	ReasonProxyGroupReady    xpv2.ConditionReason = "ProxyGroupReady"
	ReasonProxyGroupCreating xpv2.ConditionReason = "ProxyGroupCreating"
)

// Reasons of GatewayValid.
const (
	ReasonServiceFound    xpv2.ConditionReason = "ServiceFound"
	ReasonGatewayNotFound xpv2.ConditionReason = "GatewayNotFound"

	// ReasonGatewayNotAccepted means that the controller of the Gateway refuses it.
	ReasonGatewayNotAccepted xpv2.ConditionReason = "GatewayNotAccepted"

	// ReasonServiceRefused means that the only Services with a Gateway's labels are not Envoy
	// Gateway's.
	ReasonServiceRefused xpv2.ConditionReason = "ServiceRefused"

	// ReasonServiceNotFound means that Envoy Gateway has not created a Service for the Gateway.
	ReasonServiceNotFound xpv2.ConditionReason = "ServiceNotFound"

	// ReasonAmbiguous means that several objects fit where the spec names none, or that several
	// Services have the labels of the Gateway's Service.
	ReasonAmbiguous xpv2.ConditionReason = "Ambiguous"
)

// Reasons of Accepted, in addition to ReasonAccepted, ReasonGatewayNotFound and, for the
// Service with the object's name, ReasonServiceNotFound.
const (
	// ReasonGatewayNotValid means that a TailscaleGateway has found no Service.
	ReasonGatewayNotValid xpv2.ConditionReason = "GatewayNotValid"

	ReasonInvalidBackends xpv2.ConditionReason = "InvalidBackends"
	ReasonUnsupported     xpv2.ConditionReason = "Unsupported"
)

// Reasons of VIPServiceReady.
const (
	ReasonVIPServiceCreated  xpv2.ConditionReason = "VIPServiceCreated"
	ReasonVIPServiceCreating xpv2.ConditionReason = "VIPServiceCreating"
	ReasonForeignService     xpv2.ConditionReason = "ForeignService"
	ReasonCannotReconcile    xpv2.ConditionReason = "CannotReconcile"

	// ReasonNameTaken means that another object of the same cluster owns the service.
	ReasonNameTaken xpv2.ConditionReason = "NameTaken"
)

// Reasons of Advertised and Approved.
const (
	ReasonHostsAdvertising xpv2.ConditionReason = "HostsAdvertising"
	ReasonNoHost           xpv2.ConditionReason = "NoHost"
	ReasonNoHealthyBackend xpv2.ConditionReason = "NoHealthyBackend"
	ReasonHostsApproved    xpv2.ConditionReason = "HostsApproved"
	ReasonApprovalPending  xpv2.ConditionReason = "ApprovalPending"
)

// TypePolicyWarnings is True on a PolicyFragment while Tailscale warns about the policy file
// that contains the fragment.
const TypePolicyWarnings xpv2.ConditionType = "PolicyWarnings"

// Reasons of PolicyWarnings.
const (
	ReasonWarnings   xpv2.ConditionReason = "Warnings"
	ReasonNoWarnings xpv2.ConditionReason = "NoWarnings"
)

// Reasons of Ready of managed resources that cannot write their desired state.
const (
	// ReasonForeignObject means that the external object exists and belongs to others.
	ReasonForeignObject xpv2.ConditionReason = "ForeignObject"

	// ReasonConflict means that another object of the cluster manages it.
	ReasonConflict xpv2.ConditionReason = "Conflict"

	// ReasonPlanRequired means that the tailnet's plan does not include the feature.
	ReasonPlanRequired xpv2.ConditionReason = "PlanRequired"

	// ReasonQuotaExceeded means that the tailnet has the maximum number of objects of the kind.
	ReasonQuotaExceeded xpv2.ConditionReason = "QuotaExceeded"

	// ReasonMagicDNSRefused means that Tailscale does not enable MagicDNS.
	ReasonMagicDNSRefused xpv2.ConditionReason = "MagicDNSRefused"

	// ReasonLoginFailed means that a node cannot log in, although its device is usable.
	ReasonLoginFailed xpv2.ConditionReason = "LoginFailed"

	// ReasonTailnetLocked means that the tailnet lock does not trust the device.
	ReasonTailnetLocked xpv2.ConditionReason = "TailnetLocked"

	// ReasonTailnetChanged means that a provider config now leads to another tailnet than that in
	// which the object is managed.
	ReasonTailnetChanged xpv2.ConditionReason = "TailnetChanged"

	// ReasonTailnetUnknown means that the credential of a provider config changed, and that nothing
	// shows whether it leads to the tailnet in which the object is managed.
	ReasonTailnetUnknown xpv2.ConditionReason = "TailnetUnknown"

	// ReasonOtherCluster means that a Machine of a backup belongs to a cluster with another ID.
	ReasonOtherCluster xpv2.ConditionReason = "OtherCluster"

	// ReasonDeviceInUse means that the device of a Machine of a backup is online: the pod of
	// another cluster still uses its state.
	ReasonDeviceInUse xpv2.ConditionReason = "DeviceInUse"

	// ReasonStateMissing means that a Machine of a backup was restored without its state Secret.
	ReasonStateMissing xpv2.ConditionReason = "StateMissing"

	// ReasonDeviceRefused means that the device that a pod reports does not belong to its
	// Machine.
	ReasonDeviceRefused xpv2.ConditionReason = "DeviceRefused"

	// ReasonPolicyRefused means that Tailscale refuses the policy file with the desired
	// entries.
	ReasonPolicyRefused xpv2.ConditionReason = "PolicyRefused"
)
