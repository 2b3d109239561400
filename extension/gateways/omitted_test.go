// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// wide returns a route with many ports, hosts and backends.
func wide(name string, ports, hosts, backends int) *route {
	out := &route{kind: kindHTTPRoute, Route: &ir.Route{Key: ir.RouteKey{Kind: ir.KindHTTPRoute, NamespacedName: types.NamespacedName{Namespace: "shop", Name: name}}}}
	for i := range max(ports, 1) {
		out.listeners = append(out.listeners, listener{port: int32(i + 1)})
	}
	for i := range hosts {
		out.Info.Hostnames = append(out.Info.Hostnames, fmt.Sprintf("h%d.example.com", i))
	}
	for i := range backends {
		b := ir.BackendRef{Kind: ir.BackendService, NamespacedName: types.NamespacedName{Namespace: "shop", Name: "app"}, Port: int32(i + 1)}
		out.Rules = append(out.Rules, ir.Rule{Backends: []ir.BackendRef{b}})
	}
	return out
}

// TestOmitted checks that a report counts the routes that it omits.
func TestOmitted(t *testing.T) {
	type omitted = tailnetv1alpha1.ReportedOmissions
	many := func(n int) []*route {
		var out []*route
		for i := range n {
			r := wide(fmt.Sprint("r", i), 1, 1, 1)
			r.Key.Namespace = fmt.Sprint("team", i%8)
			out = append(out, r)
		}
		return out
	}
	reportOf := func(routes ...*route) earlier {
		out := earlier{routes: map[routeName]tailnetv1alpha1.ReportedRoute{}}
		for _, r := range routes {
			out.routes[routeName{r.kind, r.Key.Namespace, r.Key.Name}] = tailnetv1alpha1.ReportedRoute{}
		}
		return out
	}
	cases := map[string]struct {
		reason     string
		routes     []*route
		previous   earlier
		hosts      bool
		routesWant int
		want       omitted
	}{
		"Full":        {reason: "A report at its limit omits nothing.", routes: many(maxRoutes), previous: reportOf(many(maxRoutes)...), routesWant: maxRoutes},
		"Routes":      {reason: "Routes beyond the limit are counted.", routes: many(maxRoutes + 3), previous: reportOf(many(maxRoutes)...), routesWant: maxRoutes, want: omitted{Routes: 3}},
		"Wide":        {reason: "A route at its limits is complete.", routes: []*route{wide("a", maxPorts, maxHosts, maxBackends)}, hosts: true, routesWant: 1},
		"Ports":       {reason: "Routes with too many ports are counted.", routes: []*route{wide("a", maxPorts+1, 1, 1), wide("b", 1, 1, 1)}, routesWant: 2, want: omitted{TruncatedRoutes: 1}},
		"Hostnames":   {reason: "Routes with too many host names are counted.", routes: []*route{wide("a", 1, maxHosts+1, 1)}, hosts: true, routesWant: 1, want: omitted{TruncatedRoutes: 1}},
		"NotResolved": {reason: "Host names that are not reported do not count.", routes: []*route{wide("a", 1, maxHosts+1, 1)}, routesWant: 1},
		"Backends":    {reason: "Routes with too many backends are counted, once each.", routes: []*route{wide("a", maxPorts+1, 1, maxBackends+1)}, routesWant: 1, want: omitted{TruncatedRoutes: 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			routes, got := reportRoutes(tc.routes, func(ir.RouteKey, ir.BackendRef) bool { return true }, tc.hosts, tc.previous)
			if len(routes) != tc.routesWant {
				t.Errorf("\n%s\nreportRoutes(...): %d routes, want %d", tc.reason, len(routes), tc.routesWant)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nreportRoutes(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestGeneratedOmitted checks that a report with too many generated routes omits accepted
// routes first, and stays sorted.
func TestGeneratedOmitted(t *testing.T) {
	r := result{omitted: tailnetv1alpha1.ReportedOmissions{Routes: 1}}
	for i := range maxRoutes + 5 {
		w := &desiredRoute{ReportedGeneratedRoute: tailnetv1alpha1.ReportedGeneratedRoute{Service: fmt.Sprintf("s%05d", i), State: tailnetv1alpha1.GeneratedRouteAccepted}}
		if i%1000 == 999 {
			w.State = tailnetv1alpha1.GeneratedRouteRefused
		}
		r.routes = append(r.routes, w)
	}
	last := r.routes[len(r.routes)-1]
	last.State = tailnetv1alpha1.GeneratedRouteConflict
	for range 2 { // The report is filled again once the routes are written.
		r.fillReport()
		routes := r.report.GeneratedRoutes
		if len(routes) != maxRoutes || routes[0].Service != "s00000" || routes[999].State != tailnetv1alpha1.GeneratedRouteRefused {
			t.Errorf("%d routes from %s, want %d in order", len(routes), routes[0].Service, maxRoutes)
		}
		if got := routes[len(routes)-1]; got.Service != last.Service {
			t.Errorf("%s is last, want %s, which is not accepted", got.Service, last.Service)
		}
		want := &tailnetv1alpha1.ReportedOmissions{Routes: 1, GeneratedRoutes: 5}
		if diff := cmp.Diff(want, r.report.Omitted); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	}
	r.routes, r.omitted.Routes = r.routes[:maxRoutes], 0
	if r.fillReport(); r.report.Omitted != nil {
		t.Errorf("omitted: got %v, want nothing", r.report.Omitted)
	}
}

// TestReportSize checks that a report fits into an object for any number of routes, and counts
// the omitted routes.
func TestReportSize(t *testing.T) {
	long := strings.Repeat("n", 59)
	userRoutes := func(n, backends int) []tailnetv1alpha1.ReportedRoute {
		var out []tailnetv1alpha1.ReportedRoute
		for i := range n {
			r := tailnetv1alpha1.ReportedRoute{Kind: kindHTTPRoute, Namespace: fmt.Sprintf("%s%04d", long, i%8), Name: fmt.Sprintf("%s%04d", long, i), Ports: []int32{80, 443}, Hostnames: []string{long + ".example.com"}}
			for b := range backends {
				r.Backends = append(r.Backends, tailnetv1alpha1.ReportedBackend{Namespace: long, Name: fmt.Sprintf("%s%03d", long, b), Port: 65535, ProtectedBy: "SecurityPolicy " + long + "/" + long})
			}
			out = append(out, r)
		}
		return out
	}
	generated := func(n int) []*desiredRoute {
		var out []*desiredRoute
		for i := range n {
			g := tailnetv1alpha1.ReportedGeneratedRoute{
				Namespace: long, Name: fmt.Sprintf("%s%04d", long, i), Tailnet: long, Direction: tailnetv1alpha1.DirectionEgress, Service: fmt.Sprintf("%s%04d", long, i),
				Hostname: long + "." + long + ".example.com", PathPrefix: "/" + long, State: tailnetv1alpha1.GeneratedRouteAccepted,
			}
			if i == n-1 {
				g.State, g.Message = tailnetv1alpha1.GeneratedRouteRefused, strings.Repeat("m", 1024)
			}
			out = append(out, &desiredRoute{ReportedGeneratedRoute: g})
		}
		return out
	}
	cases := map[string]struct {
		reason                 string
		userRoutes             []tailnetv1alpha1.ReportedRoute
		generated              []*desiredRoute
		omitted, halfGenerated bool // Whether routes are omitted, and at least half of the generated ones are reported.
	}{
		"Most":      {reason: "The maximum of the schema does not fit.", userRoutes: userRoutes(maxRoutes, maxBackends), generated: generated(maxRoutes), omitted: true, halfGenerated: true},
		"User":      {reason: "Without generated routes, routes of users may use all the space.", userRoutes: userRoutes(maxRoutes, 1), omitted: false},
		"Generated": {reason: "Without routes of users, generated routes may use all the space.", generated: generated(maxRoutes), halfGenerated: true},
		"Usual":     {reason: "The routes of a typical Gateway all fit.", userRoutes: userRoutes(300, 3), generated: generated(300), halfGenerated: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := result{userRoutes: tc.userRoutes, routes: tc.generated}
			r.fillReport()
			u, err := unstructuredOf(&tailnetv1alpha1.GatewayReport{Spec: r.report})
			if err != nil {
				t.Fatal(err)
			}
			b, err := json.Marshal(u)
			if err != nil {
				t.Fatal(err)
			}
			if most := (3 << 19) * 9 / 10; len(b) > most {
				t.Errorf("\n%s\nwant %d bytes at most, got %d", tc.reason, most, len(b))
			}
			omitted := tailnetv1alpha1.ReportedOmissions{}
			if r.report.Omitted != nil {
				omitted = *r.report.Omitted
			}
			if got := omitted.Routes > 0; got != tc.omitted || len(r.report.Routes)+int(omitted.Routes) != len(tc.userRoutes) || len(r.report.GeneratedRoutes)+int(omitted.GeneratedRoutes) != len(tc.generated) {
				t.Errorf("\n%s\n%d routes and %d generated routes are reported, and %+v omitted", tc.reason, len(r.report.Routes), len(r.report.GeneratedRoutes), omitted)
			}
			if tc.halfGenerated && (2*len(r.report.GeneratedRoutes) < len(tc.generated) || r.report.GeneratedRoutes[len(r.report.GeneratedRoutes)-1].Message == "") {
				t.Errorf("\n%s\n%d generated routes are reported, without the one that is not accepted", tc.reason, len(r.report.GeneratedRoutes))
			}
			t.Logf("%d bytes, %d and %d routes", len(b), len(r.report.Routes), len(r.report.GeneratedRoutes))
		})
	}
}
