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

// wide is a route with more than a report tells of one.
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

// TestLeftOut shows that a report counts what it has no room for.
func TestLeftOut(t *testing.T) {
	type leftOut = tailnetv1alpha1.ReportedLeftOut
	many := func(n int) []*route {
		var out []*route
		for i := range n {
			out = append(out, wide(fmt.Sprint("r", i), 1, 1, 1))
		}
		return out
	}
	cases := map[string]struct {
		reason string
		routes []*route
		hosts  bool
		told   int
		want   leftOut
	}{
		"Full":        {reason: "A full report leaves nothing out.", routes: many(maxRoutes), told: maxRoutes},
		"Routes":      {reason: "Routes beyond that should be counted.", routes: many(maxRoutes + 3), told: maxRoutes, want: leftOut{Routes: 3}},
		"Wide":        {reason: "A route may have as much as there is room for.", routes: []*route{wide("a", maxPorts, maxHosts, maxBackends)}, hosts: true, told: 1},
		"Ports":       {reason: "So should be routes with more ports.", routes: []*route{wide("a", maxPorts+1, 1, 1), wide("b", 1, 1, 1)}, told: 2, want: leftOut{RoutesInPart: 1}},
		"Hostnames":   {reason: "Or with more hostnames.", routes: []*route{wide("a", 1, maxHosts+1, 1)}, hosts: true, told: 1, want: leftOut{RoutesInPart: 1}},
		"NotResolved": {reason: "Hostnames that nobody asks for are not left out.", routes: []*route{wide("a", 1, maxHosts+1, 1)}, told: 1},
		"Backends":    {reason: "Or with more backends, once each.", routes: []*route{wide("a", maxPorts+1, 1, maxBackends+1)}, told: 1, want: leftOut{RoutesInPart: 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			told, got := reported(tc.routes, func(ir.RouteKey, ir.BackendRef) bool { return true }, tc.hosts)
			if len(told) != tc.told {
				t.Errorf("\n%s\nreported(...): %d routes, want %d", tc.reason, len(told), tc.told)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nreported(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestGeneratedLeftOut shows that of too many generated routes those are told of that do
// not answer, in order.
func TestGeneratedLeftOut(t *testing.T) {
	r := result{leftOut: tailnetv1alpha1.ReportedLeftOut{Routes: 1}}
	for i := range maxRoutes + 5 {
		w := &wanted{ReportedGeneratedRoute: tailnetv1alpha1.ReportedGeneratedRoute{Service: fmt.Sprintf("s%05d", i), State: tailnetv1alpha1.GeneratedRouteAccepted}}
		if i%1000 == 999 {
			w.State = tailnetv1alpha1.GeneratedRouteRefused
		}
		r.routes = append(r.routes, w)
	}
	last := r.routes[len(r.routes)-1]
	last.State = tailnetv1alpha1.GeneratedRouteConflict
	for range 2 { // It is told again once the routes are written.
		r.tell()
		of := r.report.GeneratedRoutes
		if len(of) != maxRoutes || of[0].Service != "s00000" || of[999].State != tailnetv1alpha1.GeneratedRouteRefused {
			t.Errorf("%d routes from %s, want %d in order", len(of), of[0].Service, maxRoutes)
		}
		if got := of[len(of)-1]; got.Service != last.Service {
			t.Errorf("%s is last, want %s, which does not answer", got.Service, last.Service)
		}
		want := &tailnetv1alpha1.ReportedLeftOut{Routes: 1, GeneratedRoutes: 5}
		if diff := cmp.Diff(want, r.report.LeftOut); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	}
	r.routes, r.leftOut.Routes = r.routes[:maxRoutes], 0
	if r.tell(); r.report.LeftOut != nil {
		t.Errorf("%v is left out, want nothing", r.report.LeftOut)
	}
}

// TestReportSize shows that a report fits into an object, whatever routes there are, and
// counts what it has no room for.
func TestReportSize(t *testing.T) {
	long := strings.Repeat("n", 59)
	people := func(n, backends int) []tailnetv1alpha1.ReportedRoute {
		var out []tailnetv1alpha1.ReportedRoute
		for i := range n {
			r := tailnetv1alpha1.ReportedRoute{Kind: kindHTTPRoute, Namespace: long, Name: fmt.Sprintf("%s%04d", long, i), Ports: []int32{80, 443}, Hostnames: []string{long + ".example.com"}}
			for b := range backends {
				r.Backends = append(r.Backends, tailnetv1alpha1.ReportedBackend{Namespace: long, Name: fmt.Sprintf("%s%03d", long, b), Port: 65535, ProtectedBy: "SecurityPolicy " + long + "/" + long})
			}
			out = append(out, r)
		}
		return out
	}
	generated := func(n int) []*wanted {
		var out []*wanted
		for i := range n {
			g := tailnetv1alpha1.ReportedGeneratedRoute{
				Namespace: long, Name: fmt.Sprintf("%s%04d", long, i), Tailnet: long, Direction: tailnetv1alpha1.DirectionEgress, Service: fmt.Sprintf("%s%04d", long, i),
				Hostname: long + "." + long + ".example.com", PathPrefix: "/" + long, State: tailnetv1alpha1.GeneratedRouteAccepted,
			}
			if i == n-1 {
				g.State, g.Message = tailnetv1alpha1.GeneratedRouteRefused, strings.Repeat("m", 1024)
			}
			out = append(out, &wanted{ReportedGeneratedRoute: g})
		}
		return out
	}
	cases := map[string]struct {
		reason          string
		people          []tailnetv1alpha1.ReportedRoute
		generated       []*wanted
		leftOut, leastG bool // Whether routes are left out, and at least half of the generated told.
	}{
		"Most":      {reason: "The most that the schema allows does not fit.", people: people(maxRoutes, maxBackends), generated: generated(maxRoutes), leftOut: true, leastG: true},
		"People":    {reason: "Without generated routes people's have all the room.", people: people(maxRoutes, 1), leftOut: false},
		"Generated": {reason: "Without people's routes generated ones have all the room.", generated: generated(maxRoutes), leastG: true},
		"Usual":     {reason: "A usual Gateway's routes all fit.", people: people(300, 3), generated: generated(300), leastG: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := result{people: tc.people, routes: tc.generated}
			r.tell()
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
			left := tailnetv1alpha1.ReportedLeftOut{}
			if r.report.LeftOut != nil {
				left = *r.report.LeftOut
			}
			if got := left.Routes > 0; got != tc.leftOut || len(r.report.Routes)+int(left.Routes) != len(tc.people) || len(r.report.GeneratedRoutes)+int(left.GeneratedRoutes) != len(tc.generated) {
				t.Errorf("\n%s\n%d and %d routes are told of, and %+v left out", tc.reason, len(r.report.Routes), len(r.report.GeneratedRoutes), left)
			}
			if tc.leastG && (2*len(r.report.GeneratedRoutes) < len(tc.generated) || r.report.GeneratedRoutes[len(r.report.GeneratedRoutes)-1].Message == "") {
				t.Errorf("\n%s\n%d generated routes are told of, without the one that does not answer", tc.reason, len(r.report.GeneratedRoutes))
			}
			t.Logf("%d bytes, %d and %d routes", len(b), len(r.report.Routes), len(r.report.GeneratedRoutes))
		})
	}
}
