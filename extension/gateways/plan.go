// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"cmp"
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/internal/refgrant"
)

// An input is all that is known of one TailscaleGateway. Nothing of it is changed.
type input struct {
	object *gatewayv1alpha1.TailscaleGateway

	// gateway is nil if there is none.
	gateway *gwapiv1.Gateway
	sets    []*gwapiv1.ListenerSet

	// routes to the Gateway and its ListenerSets, in any order.
	routes []client.Object

	// peers are the TailscaleGateways of the Gateway, in any order. It may be among them.
	peers []*gatewayv1alpha1.TailscaleGateway

	// endpoints that discover for it.
	endpoints []*gatewayv1alpha1.TailscaleEndpoints

	// local are the TailscaleEndpoints and TailscaleServices of its namespace that no
	// TailscaleGateway composed, in any order.
	local local

	// services are the TailscaleServices that are composed for it.
	services []*gatewayv1alpha1.TailscaleServices

	// around is what of others may lead back to the Gateway.
	around neighbourhood

	// generated routes that are there.
	generated []client.Object

	// permitted reports whether a route may name a Service.
	permitted func(ir.RouteKey, ir.BackendRef) bool

	// grants of all namespaces. Without one of the Gateway's only that of the same
	// namespace is shared.
	grants refgrant.Grants

	// guards are policies that may protect backends, in any order, and policiesKnown tells
	// that all are among them.
	guards        []*guard
	policiesKnown bool

	// extension that reports.
	extension tailnetv1alpha1.ReportedExtension
}

// gatewayOf a TailscaleGateway.
func gatewayOf(o *gatewayv1alpha1.TailscaleGateway) types.NamespacedName {
	n := types.NamespacedName{Namespace: o.Spec.GatewayRef.Namespace, Name: o.Spec.GatewayRef.Name}
	if n.Namespace == "" {
		n.Namespace = o.Namespace
	}
	return n
}

// granted reports whether the TailscaleGateway may share the Gateway.
func (in input) granted() bool {
	return in.grants.PermitGateway(in.object.Namespace, gatewayOf(in.object))
}

// A result is what is to be there.
type result struct {
	routes []*wanted
	report tailnetv1alpha1.GatewayReportSpec

	// people's routes, as far as there are not too many, and what is left out of them.
	people  []tailnetv1alpha1.ReportedRoute
	leftOut tailnetv1alpha1.ReportedLeftOut
}

// plan what is to be there for a TailscaleGateway with tailnets. The same input, in
// whatever order, has the same result.
func plan(in input) result {
	ls := listenersOf(in.gateway, in.sets)
	people := accepted(in.routes, ls)
	out := result{}
	if in.granted() {
		out.routes = generated(in, people)
	} else {
		// What others have at their Gateway is not for its namespace to know.
		people = nil
	}
	settle(in, out.routes, ls, people)
	there := map[routeID]client.Object{}
	for _, r := range in.generated {
		there[idOf(r)] = r
	}
	for _, w := range out.routes {
		if w.made = w.State == ""; w.made {
			w.State, w.Message = stand(there[w.id()])
		}
	}
	out.report = tailnetv1alpha1.GatewayReportSpec{Gateway: in.object.Name, Extension: in.extension, Untold: untold(in), PoliciesKnown: in.policiesKnown}
	out.people, out.leftOut = reported(people, in.permitted, resolves(in.object))
	protect(out.people, in.protected(people, ls))
	out.tell()
	return out
}

// tell of people's routes and of the wanted ones in the report, as far as there is room.
func (r *result) tell() {
	of := r.generated()
	left := r.leftOut
	n := min(len(of), maxRoutes)
	worst := slices.SortedStableFunc(slices.Values(of), func(a, b tailnetv1alpha1.ReportedGeneratedRoute) int {
		return cmp.Compare(slices.Index(worstFirst, a.State), slices.Index(worstFirst, b.State))
	})
	// People's routes may have what generated ones leave, and the other way round.
	_, size := fits(r.people, maxBytes)
	n, size = fits(worst[:n], max(maxBytes/2, maxBytes-size))
	if n < len(of) {
		left.GeneratedRoutes = int32(len(of) - n)
		of = worst[:n]
		slices.SortStableFunc(of, compareGenerated)
	}
	n, _ = fits(r.people, maxBytes-size)
	left.Routes += int32(len(r.people) - n)
	r.report.Routes, r.report.GeneratedRoutes, r.report.LeftOut = r.people[:n:n], of, nil
	if left != (tailnetv1alpha1.ReportedLeftOut{}) {
		r.report.LeftOut = &left
	}
}

// fits returns how many of the first items there is room for, in bytes, and how many bytes
// these take.
func fits[T any](of []T, room int) (n, size int) {
	for i := range of {
		b, err := json.Marshal(of[i])
		if err != nil || size+len(b)+1 > room {
			return i, size
		}
		size += len(b) + 1
	}
	return len(of), size
}

// worstFirst is the order in which generated routes are told of where there is no room
// for all.
var worstFirst = []tailnetv1alpha1.GeneratedRouteState{ //nolint:gochecknoglobals // A constant list.
	tailnetv1alpha1.GeneratedRouteConflict, tailnetv1alpha1.GeneratedRouteRefused,
	tailnetv1alpha1.GeneratedRoutePending, tailnetv1alpha1.GeneratedRouteAccepted,
}

// generated is what is told of the wanted routes, sorted.
func (r *result) generated() []tailnetv1alpha1.ReportedGeneratedRoute {
	var out []tailnetv1alpha1.ReportedGeneratedRoute
	for _, w := range r.routes {
		of := w.ReportedGeneratedRoute
		if !w.made {
			of.Name = ""
		}
		out = append(out, of)
	}
	slices.SortStableFunc(out, compareGenerated)
	return out
}

func compareGenerated(a, b tailnetv1alpha1.ReportedGeneratedRoute) int {
	return cmp.Or(cmp.Compare(a.Tailnet, b.Tailnet), cmp.Compare(a.Direction, b.Direction), cmp.Compare(a.Service, b.Service), cmp.Compare(a.Namespace, b.Namespace))
}
