// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package routes

import (
	"cmp"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/refgrant"
)

// An Input holds the objects that concern one TailscaleGateway. They are read-only.
type Input struct {
	Object *gatewayv1alpha1.TailscaleGateway

	// Gateway is nil if it does not exist.
	Gateway *gwapiv1.Gateway
	Sets    []*gwapiv1.ListenerSet

	// Routes to the Gateway and its ListenerSets, in any order.
	Routes []client.Object

	// Peers are the TailscaleGateways of the Gateway, in any order, possibly including
	// Object.
	Peers []*gatewayv1alpha1.TailscaleGateway

	// Endpoints discover for the TailscaleGateway.
	Endpoints []*gatewayv1alpha1.TailscaleEndpoints

	// Local holds the TailscaleEndpoints and TailscaleServices of the namespace that no
	// TailscaleGateway composed, in any order.
	Local Local

	// Services are the TailscaleServices that are composed for the TailscaleGateway.
	Services []*gatewayv1alpha1.TailscaleServices

	// Neighborhood holds the objects that may lead back to the Gateway.
	Neighborhood Neighborhood

	// Generated holds the existing generated routes.
	Generated []client.Object

	// Permitted reports whether a route may reference a Service.
	Permitted func(ir.RouteKey, ir.BackendRef) bool

	// Grants are the ReferenceGrants of all namespaces. Without a grant in the Gateway's
	// namespace, only TailscaleGateways of that namespace may share the Gateway.
	Grants refgrant.Grants
}

// Granted reports whether the TailscaleGateway may share the Gateway.
func (inputs Input) Granted() bool {
	return inputs.Grants.PermitGateway(inputs.Object.Namespace, inputs.Object.GatewayName())
}

// endpointsIn returns the TailscaleEndpoints that discover in a tailnet, sorted by name.
func (inputs Input) endpointsIn(tailnet string) []*gatewayv1alpha1.TailscaleEndpoints {
	var out []*gatewayv1alpha1.TailscaleEndpoints
	for _, e := range inputs.Endpoints {
		if e.Labels[meta.LabelGatewayTailnet] == tailnet {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b *gatewayv1alpha1.TailscaleEndpoints) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// A Local holds objects of one namespace that no TailscaleGateway composed.
type Local struct {
	Endpoints []*gatewayv1alpha1.TailscaleEndpoints
	Services  []*gatewayv1alpha1.TailscaleServices
}

// A Neighborhood holds the objects of all namespaces through which a generated route could lead
// back to its Gateway. It is empty if no discovered endpoint of a TailscaleGateway leads to a
// Gateway.
type Neighborhood struct {
	// Gateways are all TailscaleGateways.
	Gateways []*gatewayv1alpha1.TailscaleGateway

	// Services are the TailscaleServices with a TailscaleGateway as a backend.
	Services []*gatewayv1alpha1.TailscaleServices

	// Endpoints are the TailscaleEndpoints that discover for TailscaleGateways.
	Endpoints []*gatewayv1alpha1.TailscaleEndpoints
}
