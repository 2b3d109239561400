// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/gateways/routes"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// wide returns a route with many ports, hosts and backends.
func wide(name string, ports, hosts, backends int) *routes.Route {
	out := &routes.Route{Kind: routes.KindHTTPRoute, Route: &ir.Route{Key: ir.RouteKey{Kind: ir.KindHTTPRoute, NamespacedName: types.NamespacedName{Namespace: "shop", Name: name}}}}
	for i := range max(ports, 1) {
		out.Listeners = append(out.Listeners, routes.Listener{Port: int32(i + 1)})
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
	many := func(n int) []*routes.Route {
		var out []*routes.Route
		for i := range n {
			r := wide(fmt.Sprint("r", i), 1, 1, 1)
			r.Key.Namespace = fmt.Sprint("team", i%8)
			out = append(out, r)
		}
		return out
	}
	reportOf := func(served ...*routes.Route) earlier {
		out := earlier{routes: map[routeName]tailnetv1alpha1.ReportedRoute{}}
		for _, r := range served {
			out.routes[routeName{r.Kind, r.Key.Namespace, r.Key.Name}] = tailnetv1alpha1.ReportedRoute{}
		}
		return out
	}
	cases := map[string]struct {
		reason     string
		routes     []*routes.Route
		previous   earlier
		hosts      bool
		routesWant int
		want       omitted
	}{
		"Full":        {reason: "A report at its limit omits nothing.", routes: many(maxRoutes), previous: reportOf(many(maxRoutes)...), routesWant: maxRoutes},
		"Routes":      {reason: "Routes beyond the limit are counted.", routes: many(maxRoutes + 3), previous: reportOf(many(maxRoutes)...), routesWant: maxRoutes, want: omitted{Routes: 3}},
		"Wide":        {reason: "A route at its limits is complete.", routes: []*routes.Route{wide("a", maxPorts, maxHosts, maxBackends)}, hosts: true, routesWant: 1},
		"Ports":       {reason: "Routes with too many ports are counted.", routes: []*routes.Route{wide("a", maxPorts+1, 1, 1), wide("b", 1, 1, 1)}, routesWant: 2, want: omitted{TruncatedRoutes: 1}},
		"Hostnames":   {reason: "Routes with too many host names are counted.", routes: []*routes.Route{wide("a", 1, maxHosts+1, 1)}, hosts: true, routesWant: 1, want: omitted{TruncatedRoutes: 1}},
		"NotResolved": {reason: "Host names that are not reported do not count.", routes: []*routes.Route{wide("a", 1, maxHosts+1, 1)}, routesWant: 1},
		"Backends":    {reason: "Routes with too many backends are counted, once each.", routes: []*routes.Route{wide("a", maxPorts+1, 1, maxBackends+1)}, routesWant: 1, want: omitted{TruncatedRoutes: 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			reported, got := reportRoutes(tc.routes, func(ir.RouteKey, ir.BackendRef) bool { return true }, tc.hosts, tc.previous)
			if len(reported) != tc.routesWant {
				t.Errorf("\n%s\nreportRoutes(...): %d routes, want %d", tc.reason, len(reported), tc.routesWant)
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
	c := Content{omitted: tailnetv1alpha1.ReportedOmissions{Routes: 1}}
	var desired []*routes.Desired
	for i := range maxRoutes + 5 {
		w := &routes.Desired{ReportedGeneratedRoute: tailnetv1alpha1.ReportedGeneratedRoute{Service: fmt.Sprintf("s%05d", i), State: tailnetv1alpha1.GeneratedRouteAccepted}}
		if i%1000 == 999 {
			w.State = tailnetv1alpha1.GeneratedRouteRefused
		}
		desired = append(desired, w)
	}
	last := desired[len(desired)-1]
	last.State = tailnetv1alpha1.GeneratedRouteConflict
	for range 2 { // The report is filled again once the routes are written.
		report := c.Spec(desired)
		generated := report.GeneratedRoutes
		if len(generated) != maxRoutes || generated[0].Service != "s00000" || generated[999].State != tailnetv1alpha1.GeneratedRouteRefused {
			t.Errorf("%d routes from %s, want %d in order", len(generated), generated[0].Service, maxRoutes)
		}
		if got := generated[len(generated)-1]; got.Service != last.Service {
			t.Errorf("%s is last, want %s, which is not accepted", got.Service, last.Service)
		}
		want := &tailnetv1alpha1.ReportedOmissions{Routes: 1, GeneratedRoutes: 5}
		if diff := cmp.Diff(want, report.Omitted); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	}
	c.omitted.Routes = 0
	if got := c.Spec(desired[:maxRoutes]).Omitted; got != nil {
		t.Errorf("omitted: got %v, want nothing", got)
	}
}

// TestReportSize checks that a report fits into an object for any number of routes, and counts
// the omitted routes.
func TestReportSize(t *testing.T) {
	long := strings.Repeat("n", 59)
	userRoutes := func(n, backends int) []tailnetv1alpha1.ReportedRoute {
		var out []tailnetv1alpha1.ReportedRoute
		for i := range n {
			r := tailnetv1alpha1.ReportedRoute{Kind: routes.KindHTTPRoute, Namespace: fmt.Sprintf("%s%04d", long, i%8), Name: fmt.Sprintf("%s%04d", long, i), Ports: []int32{80, 443}, Hostnames: []string{long + ".example.com"}}
			for b := range backends {
				r.Backends = append(r.Backends, tailnetv1alpha1.ReportedBackend{Namespace: long, Name: fmt.Sprintf("%s%03d", long, b), Port: 65535, ProtectedBy: "SecurityPolicy " + long + "/" + long})
			}
			out = append(out, r)
		}
		return out
	}
	generated := func(n int) []*routes.Desired {
		var out []*routes.Desired
		for i := range n {
			g := tailnetv1alpha1.ReportedGeneratedRoute{
				Namespace: long, Name: fmt.Sprintf("%s%04d", long, i), Tailnet: long, Direction: tailnetv1alpha1.DirectionEgress, Service: fmt.Sprintf("%s%04d", long, i),
				Hostname: long + "." + long + ".example.com", PathPrefix: "/" + long, State: tailnetv1alpha1.GeneratedRouteAccepted,
			}
			if i == n-1 {
				g.State, g.Message = tailnetv1alpha1.GeneratedRouteRefused, strings.Repeat("m", 1024)
			}
			out = append(out, &routes.Desired{ReportedGeneratedRoute: g})
		}
		return out
	}
	cases := map[string]struct {
		reason                 string
		userRoutes             []tailnetv1alpha1.ReportedRoute
		generated              []*routes.Desired
		omitted, halfGenerated bool // Whether routes are omitted, and at least half of the generated ones are reported.
	}{
		"Most":      {reason: "The maximum of the schema does not fit.", userRoutes: userRoutes(maxRoutes, maxBackends), generated: generated(maxRoutes), omitted: true, halfGenerated: true},
		"User":      {reason: "Without generated routes, routes of users may use all the space.", userRoutes: userRoutes(maxRoutes, 1), omitted: false},
		"Generated": {reason: "Without routes of users, generated routes may use all the space.", generated: generated(maxRoutes), halfGenerated: true},
		"Usual":     {reason: "The routes of a typical Gateway all fit.", userRoutes: userRoutes(300, 3), generated: generated(300), halfGenerated: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			report := Content{routes: tc.userRoutes}.Spec(tc.generated)
			b, err := json.Marshal(&tailnetv1alpha1.GatewayReport{Spec: report})
			if err != nil {
				t.Fatal(err)
			}
			if most := (3 << 19) * 9 / 10; len(b) > most {
				t.Errorf("\n%s\nwant %d bytes at most, got %d", tc.reason, most, len(b))
			}
			omitted := tailnetv1alpha1.ReportedOmissions{}
			if report.Omitted != nil {
				omitted = *report.Omitted
			}
			if got := omitted.Routes > 0; got != tc.omitted || len(report.Routes)+int(omitted.Routes) != len(tc.userRoutes) || len(report.GeneratedRoutes)+int(omitted.GeneratedRoutes) != len(tc.generated) {
				t.Errorf("\n%s\n%d routes and %d generated routes are reported, and %+v omitted", tc.reason, len(report.Routes), len(report.GeneratedRoutes), omitted)
			}
			if tc.halfGenerated && (2*len(report.GeneratedRoutes) < len(tc.generated) || report.GeneratedRoutes[len(report.GeneratedRoutes)-1].Message == "") {
				t.Errorf("\n%s\n%d generated routes are reported, without the one that is not accepted", tc.reason, len(report.GeneratedRoutes))
			}
			t.Logf("%d bytes, %d and %d routes", len(b), len(report.Routes), len(report.GeneratedRoutes))
		})
	}
}
