// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// Labels of the Services that Envoy Gateway creates for Gateways, wherever it runs its proxies
// (envoyproxy/gateway v1.9 internal/gatewayapi/translator.go and
// internal/infrastructure/kubernetes/proxy/resource.go). A Service that several Gateways of a class
// share has only the label of the class.
const (
	LabelOwningGatewayNamespace = "gateway.envoyproxy.io/owning-gateway-namespace"
	LabelOwningGatewayName      = "gateway.envoyproxy.io/owning-gateway-name"
	LabelOwningGatewayClass     = "gateway.envoyproxy.io/owning-gatewayclass"
)

// LabelManagedBy names the program that creates an object. Objects that Envoy Gateway creates have the
// value ManagedByEnvoyGateway, and those that the provider creates for ServiceExports and ServiceImports
// ManagedByMulticluster.
const (
	LabelManagedBy        = "app.kubernetes.io/managed-by"
	ManagedByEnvoyGateway = "envoy-gateway"
	ManagedByMulticluster = "tailscale-gateway-multicluster"
)

// Condition types of a TailscaleGateway, in addition to TypeGatewayValid.
const (
	// TypeTailnetsValid reports whether the object may use all its tailnets.
	TypeTailnetsValid xpv2.ConditionType = "TailnetsValid"

	// TypeEndpointsReady reports whether all its proxies are in their tailnets.
	TypeEndpointsReady xpv2.ConditionType = "EndpointsReady"

	// TypeGatewayVIPReady reports whether the Gateway's Tailscale Service is hosted in
	// each tailnet.
	TypeGatewayVIPReady xpv2.ConditionType = "GatewayVIPReady"

	// TypeServicesReady reports whether all Tailscale Services have their desired state.
	TypeServicesReady xpv2.ConditionType = "ServicesReady"

	// TypeRoutesReady reports whether all generated routes work.
	TypeRoutesReady xpv2.ConditionType = "RoutesReady"

	// TypeDiscoveryPrivate reports whether discovered services are reachable through the
	// Gateway from private networks alone. It does not affect readiness.
	TypeDiscoveryPrivate xpv2.ConditionType = "DiscoveryPrivate"

	// TypeSplitDNSReady reports whether all hostnames resolve in the tailnets with splitDNS.
	TypeSplitDNSReady xpv2.ConditionType = "SplitDNSReady"

	// TypeExtensionServerReady reports whether an extension reports about the Gateway.
	TypeExtensionServerReady xpv2.ConditionType = "ExtensionServerReady"
)

// Reasons of EndpointsReady.
const (
	ReasonEndpointsReady    xpv2.ConditionReason = "EndpointsReady"
	ReasonEndpointsNotReady xpv2.ConditionReason = "EndpointsNotReady"
)

// Reasons of ServicesReady and GatewayVIPReady, in addition to ReasonVIPServiceCreating.
const (
	ReasonServicesConfigured xpv2.ConditionReason = "ServicesConfigured"
	ReasonServicesCreating   xpv2.ConditionReason = "ServicesCreating"

	// ReasonServiceError means that the user must fix an error.
	ReasonServiceError xpv2.ConditionReason = "ServiceError"

	// ReasonTooManyRoutes means that the extension's report has no room for all routes.
	ReasonTooManyRoutes xpv2.ConditionReason = "TooManyRoutes"

	// ReasonPoliciesUnknown means that the policies that protect backends are not known, so no
	// backend is published.
	ReasonPoliciesUnknown xpv2.ConditionReason = "PoliciesUnknown"

	// ReasonRefNotPermitted means that no ReferenceGrant permits the object to share the
	// Gateway, or that the extension has not seen it yet. It is also a reason of GatewayValid,
	// RoutesReady and SplitDNSReady, and of Accepted of a TailscaleServices with a backend that is
	// a Service of another namespace.
	ReasonRefNotPermitted xpv2.ConditionReason = "RefNotPermitted"

	// ReasonGatewayVIPHosted means that proxies host the Gateway's Tailscale Service.
	ReasonGatewayVIPHosted xpv2.ConditionReason = "GatewayVIPHosted"

	// ReasonGatewayVIPNotHosted means that no proxy hosts it in some tailnet.
	ReasonGatewayVIPNotHosted xpv2.ConditionReason = "GatewayVIPNotHosted"
)

// Reasons of RoutesReady.
const (
	ReasonRoutesAccepted xpv2.ConditionReason = "RoutesAccepted"
	ReasonRoutesPending  xpv2.ConditionReason = "RoutesPending"

	// ReasonHostCollision means that two services need the same host and path.
	ReasonHostCollision xpv2.ConditionReason = "HostCollision"

	// ReasonRouteConflict means that a user's route has the host and path of a service.
	ReasonRouteConflict xpv2.ConditionReason = "RouteConflict"

	// ReasonRouteRefused means that the Gateway does not accept a route.
	ReasonRouteRefused xpv2.ConditionReason = "RouteRefused"
)

// ReasonDiscoverySelectsAll is a reason of RoutesReady. It means that discovery is off in a
// tailnet, because neither patterns nor tags are set.
const ReasonDiscoverySelectsAll xpv2.ConditionReason = "DiscoverySelectsAll"

// Reasons of DiscoveryPrivate.
const (
	ReasonNoPublicAddress xpv2.ConditionReason = "NoPublicAddress"

	// ReasonPublicAddress means that the Service in front of the Gateway has a public
	// address.
	ReasonPublicAddress xpv2.ConditionReason = "PublicAddress"
)

// Reasons of SplitDNSReady.
const (
	ReasonHostnamesResolve xpv2.ConditionReason = "HostnamesResolve"
	ReasonSplitDNSCreating xpv2.ConditionReason = "SplitDNSCreating"

	// ReasonSplitDNSError means that the user must fix an error.
	ReasonSplitDNSError xpv2.ConditionReason = "SplitDNSError"

	// ReasonHostnamesNotCovered means that a hostname resolves only with another domain in the
	// spec.
	ReasonHostnamesNotCovered xpv2.ConditionReason = "HostnamesNotCovered"

	// ReasonTooManyHostnames means that there are more hostnames than proxies can resolve.
	ReasonTooManyHostnames xpv2.ConditionReason = "TooManyHostnames"
)

// Reasons of ExtensionServerReady.
const (
	// ReasonExtensionReporting means that the installed extension works and has reported about
	// the Gateway, and ReasonNoExtension that none is installed.
	ReasonExtensionReporting xpv2.ConditionReason = "ExtensionReporting"
	ReasonNoExtension        xpv2.ConditionReason = "NoExtension"

	// ReasonExtensionNotNeeded means that none is installed, and that the object needs none.
	ReasonExtensionNotNeeded xpv2.ConditionReason = "ExtensionNotNeeded"

	// ReasonExtensionServing means that the extension works: the Gateway's dedicated one, or the
	// installed one if nothing else is requested of it. ReasonExtensionNotReady means that none
	// of its pods is ready.
	ReasonExtensionServing  xpv2.ConditionReason = "ExtensionServing"
	ReasonExtensionNotReady xpv2.ConditionReason = "ExtensionNotReady"

	// ReasonOtherNamespace means that a Gateway of another namespace cannot have a dedicated
	// extension.
	ReasonOtherNamespace xpv2.ConditionReason = "OtherNamespace"
)
