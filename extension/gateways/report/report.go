// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/gateways/routes"
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

// requestOf returns the request of a route of a user to a place in the report.
func (e earlier) requestOf(r tailnetv1alpha1.ReportedRoute) quota.Request {
	out := quota.Request{Owner: r.Namespace, Cost: 1, UID: r.UID}
	if r.Created != nil {
		out.Created = r.Created.Time
	}
	if _, ok := e.routes[nameOfRoute(r)]; ok {
		out.Allocated = 1
	}
	return out
}

// generatedRequest returns the request of a generated route to a place in the report.
func (e earlier) generatedRequest(g tailnetv1alpha1.ReportedGeneratedRoute) quota.Request {
	out := quota.Request{Cost: 1, Rank: slices.Index(worstFirst, g.State)}
	if e.generated[nameOfGenerated(g)] {
		out.Allocated = 1
	}
	return out
}

// reduced returns what a route has in common with its earlier report.
func (e earlier) reduced(r tailnetv1alpha1.ReportedRoute) tailnetv1alpha1.ReportedRoute {
	previous := e.routes[nameOfRoute(r)]
	r.Ports = common(r.Ports, previous.Ports)
	r.Hostnames = common(r.Hostnames, previous.Hostnames)
	r.Backends = commonBackends(r.Backends, previous.Backends)
	return r
}

// common returns the items that are in both lists.
func common[T comparable](items, previous []T) []T {
	return slices.DeleteFunc(slices.Clone(items), func(v T) bool { return !slices.Contains(previous, v) })
}

// commonBackends returns the backends that are in both lists.
func commonBackends(items, previous []tailnetv1alpha1.ReportedBackend) []tailnetv1alpha1.ReportedBackend {
	reported := make(map[tailnetv1alpha1.ReportedBackend]bool, len(previous))
	for _, b := range unprotected(previous) {
		reported[b] = true
	}
	return slices.DeleteFunc(slices.Clone(items), func(b tailnetv1alpha1.ReportedBackend) bool {
		b.ProtectedBy = ""
		return !reported[b]
	})
}

// unprotected returns backends without the policies that protect them.
func unprotected(backends []tailnetv1alpha1.ReportedBackend) []tailnetv1alpha1.ReportedBackend {
	out := slices.Clone(backends)
	for i := range out {
		out[i].ProtectedBy = ""
	}
	return out
}

// reportRoutes returns the reports of routes, and the numbers of routes that exceed the limits.
func reportRoutes(userRoutes []*routes.Route, permitted func(ir.RouteKey, ir.BackendRef) bool, hosts bool, previous earlier) ([]tailnetv1alpha1.ReportedRoute, tailnetv1alpha1.ReportedOmissions) {
	all := make([]tailnetv1alpha1.ReportedRoute, len(userRoutes))
	sources := make(map[routeName]*routes.Route, len(userRoutes))
	for i, r := range userRoutes {
		all[i] = tailnetv1alpha1.ReportedRoute{Kind: r.Kind, Namespace: r.Key.Namespace, Name: r.Key.Name, UID: string(r.UID)}
		if !r.Info.Created.IsZero() {
			at := metav1.NewTime(r.Info.Created)
			all[i].Created = &at
		}
		sources[nameOfRoute(all[i])] = r
	}
	out, n := quota.Admit(maxRoutes, all, previous.requestOf)
	omitted := tailnetv1alpha1.ReportedOmissions{Routes: int32(n)}
	for i := range out {
		if fillRoute(&out[i], sources[nameOfRoute(out[i])], permitted, hosts, previous) {
			omitted.TruncatedRoutes++
		}
	}
	return out, omitted
}

// fillRoute sets the ports, hostnames and backends of a reported route. It returns whether some are
// omitted.
func fillRoute(dst *tailnetv1alpha1.ReportedRoute, r *routes.Route, permitted func(ir.RouteKey, ir.BackendRef) bool, hosts bool, previous earlier) bool {
	for _, l := range r.Listeners {
		dst.Ports = append(dst.Ports, l.Port)
	}
	slices.Sort(dst.Ports)
	dst.Ports = slices.Compact(dst.Ports)
	if hosts {
		dst.Hostnames = r.Hostnames()
	}
	for _, b := range r.Backends(permitted) {
		dst.Backends = append(dst.Backends, tailnetv1alpha1.ReportedBackend{Namespace: b.Namespace, Name: b.Name, Port: b.Port})
	}
	slices.SortFunc(dst.Backends, func(a, b tailnetv1alpha1.ReportedBackend) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Port, b.Port))
	})
	dst.Backends = slices.Compact(dst.Backends)
	last := previous.routes[nameOfRoute(*dst)]
	var ports, names, backends int
	dst.Ports, ports = quota.Keep(maxPorts, dst.Ports, last.Ports)
	dst.Hostnames, names = quota.Keep(maxHosts, dst.Hostnames, last.Hostnames)
	dst.Backends, backends = quota.Keep(maxBackends, dst.Backends, unprotected(last.Backends))
	return ports+names+backends > 0
}

// worstFirst is the order in which generated routes are reported if not all of them fit.
var worstFirst = []tailnetv1alpha1.GeneratedRouteState{
	tailnetv1alpha1.GeneratedRouteConflict, tailnetv1alpha1.GeneratedRouteRefused,
	tailnetv1alpha1.GeneratedRoutePending, tailnetv1alpha1.GeneratedRouteAccepted,
}
