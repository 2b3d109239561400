// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"cmp"
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/internal/quota"
)

const (
	// The maximum numbers of reported routes, and of parts of a route, in the schema.
	maxRoutes   = 2048
	maxBackends = 256
	maxPorts    = 64
	maxHosts    = 64

	// maxBytes limits all routes as JSON: the default limit of etcd for an object is 1.5 MiB.
	maxBytes = 5 << 18
)

// ownerOfGenerated is the owner of generated routes in the limit that they share with routes of
// users. No namespace has this name.
const ownerOfGenerated = "generated routes"

// A routeName identifies a reported route.
type routeName struct{ kind, namespace, name string }

// A generatedName identifies a reported generated route.
type generatedName struct {
	tailnet            string
	direction          tailnetv1alpha1.Direction
	service, namespace string
}

// An earlier is the content of an earlier report, which stays where limits cut.
type earlier struct {
	routes    map[routeName]tailnetv1alpha1.ReportedRoute
	generated map[generatedName]bool
}

// earlierOf returns the content of an existing report. It is empty if there is none.
func earlierOf(r *tailnetv1alpha1.GatewayReport) earlier {
	out := earlier{routes: map[routeName]tailnetv1alpha1.ReportedRoute{}, generated: map[generatedName]bool{}}
	if r == nil {
		return out
	}
	for _, v := range r.Spec.Routes {
		out.routes[nameOfRoute(v)] = v
	}
	for _, g := range r.Spec.GeneratedRoutes {
		out.generated[nameOfGenerated(g)] = true
	}
	return out
}

func nameOfRoute(r tailnetv1alpha1.ReportedRoute) routeName {
	return routeName{r.Kind, r.Namespace, r.Name}
}

func nameOfGenerated(g tailnetv1alpha1.ReportedGeneratedRoute) generatedName {
	return generatedName{g.Tailnet, g.Direction, g.Service, g.Namespace}
}

// claimOf returns the claim of a route of a user to a place in the report.
func (e earlier) claimOf(r tailnetv1alpha1.ReportedRoute) quota.Claim {
	out := quota.Claim{Owner: r.Namespace, Cost: 1, UID: r.UID}
	if r.Created != nil {
		out.Created = r.Created.Time
	}
	if _, ok := e.routes[nameOfRoute(r)]; ok {
		out.Held = 1
	}
	return out
}

// generatedClaim returns the claim of a generated route to a place in the report.
func (e earlier) generatedClaim(g tailnetv1alpha1.ReportedGeneratedRoute) quota.Claim {
	out := quota.Claim{Cost: 1, Rank: slices.Index(worstFirst, g.State)}
	if e.generated[nameOfGenerated(g)] {
		out.Held = 1
	}
	return out
}

// reduced returns what a route has in common with its earlier report.
func (e earlier) reduced(r tailnetv1alpha1.ReportedRoute) tailnetv1alpha1.ReportedRoute {
	before := e.routes[nameOfRoute(r)]
	r.Ports = common(r.Ports, before.Ports)
	r.Hostnames = common(r.Hostnames, before.Hostnames)
	r.Backends = commonBackends(r.Backends, before.Backends)
	return r
}

// common returns the items that are in both lists.
func common[T comparable](items, before []T) []T {
	return slices.DeleteFunc(slices.Clone(items), func(v T) bool { return !slices.Contains(before, v) })
}

// commonBackends returns the backends that are in both lists.
func commonBackends(items, before []tailnetv1alpha1.ReportedBackend) []tailnetv1alpha1.ReportedBackend {
	known := make(map[tailnetv1alpha1.ReportedBackend]bool, len(before))
	for _, b := range unprotected(before) {
		known[b] = true
	}
	return slices.DeleteFunc(slices.Clone(items), func(b tailnetv1alpha1.ReportedBackend) bool {
		b.ProtectedBy = ""
		return !known[b]
	})
}

// unprotected returns backends without the policies that protect them.
func unprotected(in []tailnetv1alpha1.ReportedBackend) []tailnetv1alpha1.ReportedBackend {
	out := slices.Clone(in)
	for i := range out {
		out[i].ProtectedBy = ""
	}
	return out
}

// reportRoutes returns the reports of routes, and the numbers of routes that exceed the limits.
func reportRoutes(in []*route, permitted func(ir.RouteKey, ir.BackendRef) bool, hosts bool, before earlier) ([]tailnetv1alpha1.ReportedRoute, tailnetv1alpha1.ReportedOmissions) {
	all := make([]tailnetv1alpha1.ReportedRoute, len(in))
	sources := make(map[routeName]*route, len(in))
	for i, r := range in {
		all[i] = tailnetv1alpha1.ReportedRoute{Kind: r.kind, Namespace: r.Key.Namespace, Name: r.Key.Name, UID: string(r.uid)}
		if !r.Info.Created.IsZero() {
			at := metav1.NewTime(r.Info.Created)
			all[i].Created = &at
		}
		sources[nameOfRoute(all[i])] = r
	}
	out, n := quota.Admit(maxRoutes, all, before.claimOf)
	omitted := tailnetv1alpha1.ReportedOmissions{Routes: int32(n)}
	for i := range out {
		if fillRoute(&out[i], sources[nameOfRoute(out[i])], permitted, hosts, before) {
			omitted.TruncatedRoutes++
		}
	}
	return out, omitted
}

// fillRoute sets the ports, hostnames and backends of a reported route. It returns whether some are
// omitted.
func fillRoute(to *tailnetv1alpha1.ReportedRoute, r *route, permitted func(ir.RouteKey, ir.BackendRef) bool, hosts bool, before earlier) bool {
	for _, l := range r.listeners {
		to.Ports = append(to.Ports, l.port)
	}
	slices.Sort(to.Ports)
	to.Ports = slices.Compact(to.Ports)
	if hosts {
		to.Hostnames = r.hostnames()
	}
	for _, b := range r.backends(permitted) {
		to.Backends = append(to.Backends, tailnetv1alpha1.ReportedBackend{Namespace: b.Namespace, Name: b.Name, Port: b.Port})
	}
	slices.SortFunc(to.Backends, func(a, b tailnetv1alpha1.ReportedBackend) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Port, b.Port))
	})
	to.Backends = slices.Compact(to.Backends)
	last := before.routes[nameOfRoute(*to)]
	var ports, names, backends int
	to.Ports, ports = quota.Keep(maxPorts, to.Ports, last.Ports)
	to.Hostnames, names = quota.Keep(maxHosts, to.Hostnames, last.Hostnames)
	to.Backends, backends = quota.Keep(maxBackends, to.Backends, unprotected(last.Backends))
	return ports+names+backends > 0
}

// fillReport adds the routes of users and the generated routes to the report, up to its maximum
// size. A route that has grown beyond it has the parts that were reported before.
func (r *result) fillReport() {
	left := r.omitted
	generated, n := quota.Admit(maxRoutes, r.generated(), r.before.generatedClaim)
	left.GeneratedRoutes += int32(n)
	claims := make([]quota.Claim, 0, len(r.userRoutes)+len(generated))
	for _, v := range r.userRoutes {
		c := r.before.claimOf(v)
		c.Cost, c.Rank = size(v), len(worstFirst)
		if c.Held > 0 {
			c.Held = size(r.before.reduced(v))
		}
		claims = append(claims, c)
	}
	for _, g := range generated {
		c := r.before.generatedClaim(g)
		c.Owner, c.Cost = ownerOfGenerated, size(g)
		c.Held *= c.Cost
		claims = append(claims, c)
	}
	parts := quota.Allocate(maxBytes, claims)
	r.report.Routes, r.report.GeneratedRoutes, r.report.Omitted = nil, nil, nil
	for i, v := range r.userRoutes {
		switch {
		case parts[i] == 0:
			left.Routes++
			continue
		case parts[i] < claims[i].Cost:
			left.TruncatedRoutes++
			v = r.before.reduced(v)
		}
		r.report.Routes = append(r.report.Routes, v)
	}
	for i, g := range generated {
		if parts[len(r.userRoutes)+i] == 0 {
			left.GeneratedRoutes++
			continue
		}
		r.report.GeneratedRoutes = append(r.report.GeneratedRoutes, g)
	}
	if left != (tailnetv1alpha1.ReportedOmissions{}) {
		r.report.Omitted = &left
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

// worstFirst is the order in which generated routes are reported if not all of them fit.
var worstFirst = []tailnetv1alpha1.GeneratedRouteState{
	tailnetv1alpha1.GeneratedRouteConflict, tailnetv1alpha1.GeneratedRouteRefused,
	tailnetv1alpha1.GeneratedRoutePending, tailnetv1alpha1.GeneratedRouteAccepted,
}
