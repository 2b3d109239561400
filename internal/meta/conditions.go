// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// Condition types. Crossplane's own (Ready, Synced, ...) are not among them: it
// drops those when a function sets them.
const (
	// TypeAuthenticated reports whether Tailscale takes a tailnet's credential.
	TypeAuthenticated xpv2.ConditionType = "Authenticated"

	// TypeTailnetAccepted reports whether an object may use its tailnet.
	TypeTailnetAccepted xpv2.ConditionType = "TailnetAccepted"

	// TypeStatefulSetsReady reports whether all wanted proxy pods are ready.
	TypeStatefulSetsReady xpv2.ConditionType = "StatefulSetsReady"

	// TypeDeletable is set to False on a Machine that its set does not want any
	// more and cannot delete.
	TypeDeletable xpv2.ConditionType = "Deletable"

	// TypeMachinesReady reports whether all wanted machines are in the tailnet.
	TypeMachinesReady xpv2.ConditionType = "MachinesReady"

	// TypeEgressReady reports whether every egress target is reached by a proxy.
	TypeEgressReady xpv2.ConditionType = "EgressReady"

	// TypeDiscoverySuccessful reports whether the tailnet could be searched.
	TypeDiscoverySuccessful xpv2.ConditionType = "DiscoverySuccessful"

	// TypeProxyGroupReady reports whether a group has all its devices.
	TypeProxyGroupReady xpv2.ConditionType = "ProxyGroupReady"

	// TypeGatewayValid reports whether the Service in front of a Gateway was found.
	TypeGatewayValid xpv2.ConditionType = "GatewayValid"

	// TypeAccepted reports whether what a spec asks for can be done at all.
	TypeAccepted xpv2.ConditionType = "Accepted"

	// TypeEndpointsSelected reports whether a selector picked endpoints.
	TypeEndpointsSelected xpv2.ConditionType = "EndpointsSelected"

	// TypeVIPServiceReady reports whether the Tailscale Service exists and has an
	// address.
	TypeVIPServiceReady xpv2.ConditionType = "VIPServiceReady"

	// TypeAdvertised reports whether a machine hosts the Tailscale Service.
	TypeAdvertised xpv2.ConditionType = "Advertised"

	// TypeApproved reports whether the tailnet lets the machines host it.
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

	// ReasonHostNotAllowed means that a ProviderConfig names a host that the provider
	// is not to send to.
	ReasonHostNotAllowed xpv2.ConditionReason = "HostNotAllowed"
)

// Reasons of TailnetAccepted, beside ReasonTailnetNotFound and
// ReasonInvalidSelector.
const (
	ReasonAccepted            xpv2.ConditionReason = "Accepted"
	ReasonNamespaceNotAllowed xpv2.ConditionReason = "NamespaceNotAllowed"

	// ReasonNotGranted means that the tailnet allows the namespace, but not what the
	// object asks for.
	ReasonNotGranted xpv2.ConditionReason = "NotGranted"
)

// Reasons of StatefulSetsReady and MachinesReady.
const (
	ReasonAllReplicasReady     xpv2.ConditionReason = "AllReplicasReady"
	ReasonReplicasNotReady     xpv2.ConditionReason = "ReplicasNotReady"
	ReasonAllMachinesReady     xpv2.ConditionReason = "AllMachinesReady"
	ReasonMachinesNotReady     xpv2.ConditionReason = "MachinesNotReady"
	ReasonCannotPrepareMachine xpv2.ConditionReason = "CannotPrepareMachine"

	// ReasonCannotDeleteMachine means that a machine that is not wanted any more
	// stays, with its device: the provider may not delete it, or Tailscale refuses.
	ReasonCannotDeleteMachine xpv2.ConditionReason = "CannotDeleteMachine"

	// ReasonCannotApplyStatefulSet means that the API server refuses the
	// StatefulSet, or that the provider may not make it.
	ReasonCannotApplyStatefulSet xpv2.ConditionReason = "CannotApplyStatefulSet"
)

// Reasons of EgressReady.
const (
	ReasonAllTargetsReady xpv2.ConditionReason = "AllTargetsReady"
	ReasonTargetsNotReady xpv2.ConditionReason = "TargetsNotReady"

	// ReasonNoEgressProxies means that there are targets and no proxies for them.
	ReasonNoEgressProxies xpv2.ConditionReason = "NoEgressProxies"

	// ReasonNoFreePort means that the proxies' ports are used up.
	ReasonNoFreePort xpv2.ConditionReason = "NoFreePort"

	// ReasonNoPorts means that an endpoint has no port at which it could be reached.
	ReasonNoPorts xpv2.ConditionReason = "NoPorts"

	// ReasonTargetsNotPlaced means that it is not known yet whether a target is in the
	// tailnet.
	ReasonTargetsNotPlaced xpv2.ConditionReason = "TargetsNotPlaced"

	// ReasonNameMismatch means that the address of an endpoint has another name in the
	// tailnet than the endpoint says.
	ReasonNameMismatch xpv2.ConditionReason = "NameMismatch"

	// ReasonTargetsRefused means that a target's name is another one's, or that
	// there are too many.
	ReasonTargetsRefused xpv2.ConditionReason = "TargetsRefused"
)

// Reasons of DiscoverySuccessful.
const (
	ReasonDiscovered     xpv2.ConditionReason = "Discovered"
	ReasonCannotDiscover xpv2.ConditionReason = "CannotDiscover"

	// ReasonDiscoveredTooMany means that more match than can be listed.
	ReasonDiscoveredTooMany xpv2.ConditionReason = "DiscoveredTooMany"
)

// ReasonNotAskedFor means that the spec does not ask any more for what a condition
// is about.
const ReasonNotAskedFor xpv2.ConditionReason = "NotAskedFor"

// Reasons of EndpointsSelected, beside those of TailnetAccepted.
const (
	ReasonEndpointsSelected    xpv2.ConditionReason = "EndpointsSelected"
	ReasonEndpointsProvisioned xpv2.ConditionReason = "EndpointsProvisioned"
	ReasonNoEndpointsMatch     xpv2.ConditionReason = "NoEndpointsMatch"
	ReasonInvalidSelector      xpv2.ConditionReason = "InvalidSelector"
	ReasonSeveralTailnets      xpv2.ConditionReason = "SeveralTailnets"
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

	// ReasonGatewayNotAccepted means that its controller refuses the Gateway.
	ReasonGatewayNotAccepted xpv2.ConditionReason = "GatewayNotAccepted"

	// ReasonServiceRefused means that only Services have a Gateway's labels that Envoy
	// Gateway did not make.
	ReasonServiceRefused xpv2.ConditionReason = "ServiceRefused"

	// ReasonServiceNotFound means that Envoy Gateway has made no Service for it.
	ReasonServiceNotFound xpv2.ConditionReason = "ServiceNotFound"

	// ReasonAmbiguous means that several Services say that they are its.
	ReasonAmbiguous xpv2.ConditionReason = "Ambiguous"
)

// Reasons of Accepted, beside ReasonAccepted, ReasonGatewayNotFound and, of the Service of
// an object's name, ReasonServiceNotFound.
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

	// ReasonNameTaken means that another object of the same cluster has the service.
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

// TypePolicyWarnings is True on a PolicyFragment while Tailscale warns about the policy
// file that the fragment was written to.
const TypePolicyWarnings xpv2.ConditionType = "PolicyWarnings"

// Reasons of PolicyWarnings.
const (
	ReasonWarnings   xpv2.ConditionReason = "Warnings"
	ReasonNoWarnings xpv2.ConditionReason = "NoWarnings"
)

// Reasons of Ready of managed resources that may not write all that they want.
const (
	// ReasonForeignObject means that it exists and is not ours.
	ReasonForeignObject xpv2.ConditionReason = "ForeignObject"

	// ReasonConflict means that another object of the cluster manages it.
	ReasonConflict xpv2.ConditionReason = "Conflict"

	// ReasonPlanRequired means that the tailnet's plan does not include the feature.
	ReasonPlanRequired xpv2.ConditionReason = "PlanRequired"

	// ReasonQuotaExceeded means that the tailnet has as many objects of the kind as it
	// may have.
	ReasonQuotaExceeded xpv2.ConditionReason = "QuotaExceeded"

	// ReasonMagicDNSRefused means that Tailscale does not turn MagicDNS on.
	ReasonMagicDNSRefused xpv2.ConditionReason = "MagicDNSRefused"

	// ReasonTailnetLocked means that the tailnet's lock does not trust the device.
	ReasonTailnetLocked xpv2.ConditionReason = "TailnetLocked"

	// ReasonTailnetChanged means that a provider config leads to another tailnet than the
	// one that the device is in.
	ReasonTailnetChanged xpv2.ConditionReason = "TailnetChanged"

	// ReasonDeviceRefused means that the device that a pod names is not its Machine's.
	ReasonDeviceRefused xpv2.ConditionReason = "DeviceRefused"

	// ReasonPolicyRefused means that Tailscale would not take the policy file
	// with what is wanted.
	ReasonPolicyRefused xpv2.ConditionReason = "PolicyRefused"
)
