// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package routes

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
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

// Plan returns the desired routes of a TailscaleGateway with tailnets, beside the accepted routes of
// users at the listeners of its Gateway. The result does not depend on the order of the input.
func Plan(inputs Input, ls []Listener, userRoutes []*Route) []*Desired {
	var out []*Desired
	if inputs.Granted() {
		out = generated(inputs, userRoutes)
	}
	resolveConflicts(inputs, out, ls, userRoutes)
	existing := map[ID]client.Object{}
	for _, r := range inputs.Generated {
		existing[IDOf(r)] = r
	}
	for _, w := range out {
		if w.Generate = w.State == ""; w.Generate {
			w.State, w.Message = routeState(existing[w.ID()])
		}
	}
	return out
}
