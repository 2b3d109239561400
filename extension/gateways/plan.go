// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"cmp"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/internal/refgrant"
)

// An input holds all objects that concern one TailscaleGateway. The objects are read-only.
type input struct {
	object *gatewayv1alpha1.TailscaleGateway

	// gateway is nil if it does not exist.
	gateway *gwapiv1.Gateway
	sets    []*gwapiv1.ListenerSet

	// routes to the Gateway and its ListenerSets, in any order.
	routes []client.Object

	// peers are the TailscaleGateways of the Gateway, in any order, possibly including the
	// object.
	peers []*gatewayv1alpha1.TailscaleGateway

	// endpoints discover for the TailscaleGateway.
	endpoints []*gatewayv1alpha1.TailscaleEndpoints

	// local holds the TailscaleEndpoints and TailscaleServices of the namespace that no
	// TailscaleGateway composed, in any order.
	local local

	// services are the TailscaleServices that are composed for the TailscaleGateway.
	services []*gatewayv1alpha1.TailscaleServices

	// neighborhood holds the objects that may lead back to the Gateway.
	neighborhood neighborhood

	// generated holds the existing generated routes.
	generated []client.Object

	// permitted reports whether a route may reference a Service.
	permitted func(ir.RouteKey, ir.BackendRef) bool

	// grants are the ReferenceGrants of all namespaces. Without a grant in the Gateway's
	// namespace, only TailscaleGateways of that namespace may share the Gateway.
	grants refgrant.Grants

	// guards are the policies that may protect backends, in any order. policiesKnown reports
	// that the list is complete.
	guards        []*guard
	policiesKnown bool

	// report is the existing report. Nil if there is none.
	report *tailnetv1alpha1.GatewayReport

	// extension is the part of the report about this extension.
	extension tailnetv1alpha1.ReportedExtension
}

// granted reports whether the TailscaleGateway may share the Gateway.
func (inputs input) granted() bool {
	return inputs.grants.PermitGateway(inputs.object.Namespace, inputs.object.GatewayName())
}

// A result holds the desired objects.
type result struct {
	routes []*desiredRoute
	report tailnetv1alpha1.GatewayReportSpec

	// userRoutes are the routes of users, up to the maximum. omitted counts those that are left
	// out.
	userRoutes []tailnetv1alpha1.ReportedRoute
	omitted    tailnetv1alpha1.ReportedOmissions

	// previous is what the existing report contains.
	previous earlier
}

// plan returns the desired objects for a TailscaleGateway with tailnets. The result does not
// depend on the order of the input.
func plan(inputs input) result {
	ls := listenersOf(inputs.gateway, inputs.sets)
	out := result{previous: earlierOf(inputs.report)}
	// Without permission the namespace must not see the routes of the Gateway.
	var userRoutes []*route
	if inputs.granted() {
		userRoutes = accepted(inputs.routes, ls)
		out.routes = generated(inputs, userRoutes)
	}
	resolveConflicts(inputs, out.routes, ls, userRoutes)
	existing := map[routeID]client.Object{}
	for _, r := range inputs.generated {
		existing[idOf(r)] = r
	}
	for _, w := range out.routes {
		if w.generate = w.State == ""; w.generate {
			w.State, w.Message = routeState(existing[w.id()])
		}
	}
	out.report = tailnetv1alpha1.GatewayReportSpec{Gateway: inputs.object.Name, Extension: inputs.extension, ListenersWithoutIdentity: unverifiedListeners(inputs), PoliciesKnown: inputs.policiesKnown}
	out.userRoutes, out.omitted = reportRoutes(userRoutes, inputs.permitted, needsHostnames(inputs.object), out.previous)
	protect(out.userRoutes, inputs.protected(userRoutes, ls))
	out.fillReport()
	return out
}

// generated returns the reports of the desired routes, sorted.
func (r *result) generated() []tailnetv1alpha1.ReportedGeneratedRoute {
	var out []tailnetv1alpha1.ReportedGeneratedRoute
	for _, w := range r.routes {
		g := w.ReportedGeneratedRoute
		if !w.generate {
			g.Name = ""
		}
		out = append(out, g)
	}
	slices.SortStableFunc(out, compareGenerated)
	return out
}

// compareGenerated compares by tailnet, direction, service and namespace.
func compareGenerated(a, b tailnetv1alpha1.ReportedGeneratedRoute) int {
	return cmp.Or(cmp.Compare(a.Tailnet, b.Tailnet), cmp.Compare(a.Direction, b.Direction), cmp.Compare(a.Service, b.Service), cmp.Compare(a.Namespace, b.Namespace))
}
