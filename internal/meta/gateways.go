// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// Condition types of a TailscaleGateway, beside TypeGatewayValid.
const (
	// TypeTailnetsValid reports whether all its tailnets may be used.
	TypeTailnetsValid xpv2.ConditionType = "TailnetsValid"

	// TypeEndpointsReady reports whether all its proxies are in their tailnets.
	TypeEndpointsReady xpv2.ConditionType = "EndpointsReady"

	// TypeGatewayVIPReady reports whether the Gateway's Tailscale Service is hosted in
	// each tailnet.
	TypeGatewayVIPReady xpv2.ConditionType = "GatewayVIPReady"

	// TypeServicesReady reports whether all Tailscale Services are as they are wanted.
	TypeServicesReady xpv2.ConditionType = "ServicesReady"

	// TypeRoutesReady reports whether all generated routes answer.
	TypeRoutesReady xpv2.ConditionType = "RoutesReady"

	// TypeDiscoveryPrivate says whether discovered services are reachable through the
	// Gateway from private networks alone. It makes no object less ready.
	TypeDiscoveryPrivate xpv2.ConditionType = "DiscoveryPrivate"

	// TypeSplitDNSReady reports whether all hostnames resolve in the tailnets that are to
	// resolve them.
	TypeSplitDNSReady xpv2.ConditionType = "SplitDNSReady"

	// TypeExtensionServerReady reports whether an extension reports of the Gateway.
	TypeExtensionServerReady xpv2.ConditionType = "ExtensionServerReady"
)

// Reasons of EndpointsReady.
const (
	ReasonEndpointsReady    xpv2.ConditionReason = "EndpointsReady"
	ReasonEndpointsNotReady xpv2.ConditionReason = "EndpointsNotReady"
)

// Reasons of ServicesReady and GatewayVIPReady, beside ReasonVIPServiceCreating.
const (
	ReasonServicesConfigured xpv2.ConditionReason = "ServicesConfigured"
	ReasonServicesCreating   xpv2.ConditionReason = "ServicesCreating"

	// ReasonServiceError means that there is something for the user to fix.
	ReasonServiceError xpv2.ConditionReason = "ServiceError"

	// ReasonTooManyRoutes means that the extension has no room to tell of all routes.
	ReasonTooManyRoutes xpv2.ConditionReason = "TooManyRoutes"

	// ReasonPoliciesUnknown means that it is not known which policies protect backends, so
	// that none is published.
	ReasonPoliciesUnknown xpv2.ConditionReason = "PoliciesUnknown"

	// ReasonRefNotPermitted means that no ReferenceGrant lets it share the Gateway, or the
	// extension has not seen it yet. It is one of GatewayValid, RoutesReady and
	// SplitDNSReady as well.
	ReasonRefNotPermitted xpv2.ConditionReason = "RefNotPermitted"

	// ReasonGatewayVIPHosted means that proxies host the Gateway's Tailscale Service.
	ReasonGatewayVIPHosted xpv2.ConditionReason = "GatewayVIPHosted"

	// ReasonGatewayVIPNotHosted means that no proxy does, in some tailnet.
	ReasonGatewayVIPNotHosted xpv2.ConditionReason = "GatewayVIPNotHosted"
)

// Reasons of RoutesReady.
const (
	ReasonRoutesAccepted xpv2.ConditionReason = "RoutesAccepted"
	ReasonRoutesPending  xpv2.ConditionReason = "RoutesPending"

	// ReasonHostCollision means that two services are to have one host and path.
	ReasonHostCollision xpv2.ConditionReason = "HostCollision"

	// ReasonRouteConflict means that a route which somebody wrote has the host and
	// path of a service.
	ReasonRouteConflict xpv2.ConditionReason = "RouteConflict"

	// ReasonRouteRefused means that the Gateway does not take a route.
	ReasonRouteRefused xpv2.ConditionReason = "RouteRefused"
)

// ReasonDiscoverySelectsAll is one of RoutesReady. It means that nothing is looked for in a
// tailnet, for neither patterns nor tags say what.
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

	// ReasonSplitDNSError means that there is something for the user to fix.
	ReasonSplitDNSError xpv2.ConditionReason = "SplitDNSError"

	// ReasonHostnamesNotCovered means that a hostname needs a domain of the spec to be
	// resolved.
	ReasonHostnamesNotCovered xpv2.ConditionReason = "HostnamesNotCovered"

	// ReasonTooManyHostnames means that there are more than can be resolved.
	ReasonTooManyHostnames xpv2.ConditionReason = "TooManyHostnames"
)

// Reasons of ExtensionServerReady.
const (
	// ReasonExtensionReports means that the installed extension answers, and has told of
	// the Gateway, and ReasonNoExtension that none is installed.
	ReasonExtensionReports xpv2.ConditionReason = "ExtensionReports"
	ReasonNoExtension      xpv2.ConditionReason = "NoExtension"

	// ReasonExtensionServes means that the Gateway's own extension answers, or the
	// installed one of which nothing else is asked, and ReasonExtensionNotReady that none
	// of its pods does.
	ReasonExtensionServes   xpv2.ConditionReason = "ExtensionServes"
	ReasonExtensionNotReady xpv2.ConditionReason = "ExtensionNotReady"

	// ReasonOtherNamespace means that the Gateway cannot have an extension of its own from
	// here.
	ReasonOtherNamespace xpv2.ConditionReason = "OtherNamespace"
)
