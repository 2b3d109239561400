// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/gateways/routes"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/internal/quota"
)

// Facts are what a report depends on.
type Facts struct {
	Object *gatewayv1alpha1.TailscaleGateway

	// Granted reports whether the TailscaleGateway may share the Gateway.
	Granted bool

	// Extension is the part of the report about this extension.
	Extension tailnetv1alpha1.ReportedExtension

	// Routes are the routes of users that the Gateway has accepted.
	Routes []*routes.Route

	// Permitted reports whether a route may reference a Service.
	Permitted func(ir.RouteKey, ir.BackendRef) bool

	// Protectors are what protects Services. PoliciesKnown reports that all policies are known.
	Protectors    map[types.NamespacedName]string
	PoliciesKnown bool

	// Previous is the existing report. Nil if there is none.
	Previous *tailnetv1alpha1.GatewayReport
}

// A Content is what a report is to contain, before the limit of its size.
type Content struct {
	// spec is the report without routes.
	spec tailnetv1alpha1.GatewayReportSpec

	// routes are the routes of users, up to the maximum. omitted counts those that are left out.
	routes  []tailnetv1alpha1.ReportedRoute
	omitted tailnetv1alpha1.ReportedOmissions

	// previous is what the existing report contains.
	previous earlier
}

// New returns the content of a report.
func New(f Facts) Content {
	out := Content{
		spec:     tailnetv1alpha1.GatewayReportSpec{Gateway: f.Object.Name, Extension: f.Extension, ListenersWithoutIdentity: unverifiedListeners(f.Object, f.Granted), PoliciesKnown: f.PoliciesKnown},
		previous: earlierOf(f.Previous),
	}
	out.routes, out.omitted = reportRoutes(f.Routes, f.Permitted, needsHostnames(f.Object), out.previous)
	protect(out.routes, f.Protectors)
	return out
}

// Spec returns the report with the routes of users and the generated routes, up to its maximum
// size. A route that has grown beyond it has the parts that were reported before.
func (c Content) Spec(desired []*routes.Desired) tailnetv1alpha1.GatewayReportSpec {
	out, omitted := c.spec, c.omitted
	generated, n := quota.Admit(maxRoutes, Generated(desired), c.previous.generatedRequest)
	omitted.GeneratedRoutes += int32(n)
	requests := make([]quota.Request, 0, len(c.routes)+len(generated))
	for _, v := range c.routes {
		r := c.previous.requestOf(v)
		r.Cost, r.Rank = size(v), len(worstFirst)
		if r.Allocated > 0 {
			r.Allocated = size(c.previous.reduced(v))
		}
		requests = append(requests, r)
	}
	for _, g := range generated {
		r := c.previous.generatedRequest(g)
		r.Owner, r.Cost = ownerOfGenerated, size(g)
		r.Allocated *= r.Cost
		requests = append(requests, r)
	}
	parts := quota.Allocate(maxBytes, requests)
	for i, v := range c.routes {
		switch {
		case parts[i] == 0:
			omitted.Routes++
			continue
		case parts[i] < requests[i].Cost:
			omitted.TruncatedRoutes++
			v = c.previous.reduced(v)
		}
		out.Routes = append(out.Routes, v)
	}
	for i, g := range generated {
		if parts[len(c.routes)+i] == 0 {
			omitted.GeneratedRoutes++
			continue
		}
		out.GeneratedRoutes = append(out.GeneratedRoutes, g)
	}
	if omitted != (tailnetv1alpha1.ReportedOmissions{}) {
		out.Omitted = &omitted
	}
	return out
}

// Generated returns the reports of the desired routes, sorted.
func Generated(desired []*routes.Desired) []tailnetv1alpha1.ReportedGeneratedRoute {
	var out []tailnetv1alpha1.ReportedGeneratedRoute
	for _, w := range desired {
		g := w.ReportedGeneratedRoute
		if !w.Generate {
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

// needsHostnames reports whether a tailnet of the TailscaleGateway resolves host names.
// Otherwise the report has no host names, because each change of the report runs a function.
func needsHostnames(o *gatewayv1alpha1.TailscaleGateway) bool {
	return slices.ContainsFunc(o.Spec.Tailnets, func(t gatewayv1alpha1.GatewayTailnet) bool { return t.SplitDNS != nil })
}

// protect sets the policy that protects each backend of a report's routes.
func protect(reported []tailnetv1alpha1.ReportedRoute, protectors map[types.NamespacedName]string) {
	for i := range reported {
		for j := range reported[i].Backends {
			b := &reported[i].Backends[j]
			b.ProtectedBy = protectors[types.NamespacedName{Namespace: b.Namespace, Name: b.Name}]
		}
	}
}

// size returns the size of an entry in the report, with a comma. An entry that cannot be encoded
// has no place.
func size(entry any) int {
	b, err := json.Marshal(entry)
	if err != nil {
		return maxBytes + 1
	}
	return len(b) + 1
}
