// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// Indexes of the cache.
const (
	// byParent finds the objects that attach to a Gateway or a ListenerSet, by routes.ParentKey.
	byParent = "tailscale-gateway/parent"

	// byOwner finds the objects of a TailscaleGateway, by its namespace and name.
	byOwner = "tailscale-gateway/owner"

	// byBackend finds TailscaleServices with a Gateway as backend, by backendGateway.
	byBackend      = "tailscale-gateway/backend"
	backendGateway = "true"
)

// Kinds that the Controller looks up by name, beside those of package routes.
const (
	kindReferenceGrant = "ReferenceGrant"
	kindReport         = tailnetv1alpha1.GatewayReportKind
	kindRoutePolicy    = gatewayv1alpha1.TailscaleRoutePolicyKind
	kindEndpoints      = gatewayv1alpha1.TailscaleEndpointsKind
)
