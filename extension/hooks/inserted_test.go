// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/limits"
)

// TestInserted translates routes of a hostile tenant, whose policy matches 128 headers, and one of
// another tenant.
func TestInserted(t *testing.T) {
	var matches []ir.PolicyMatch
	for i := range 128 {
		matches = append(matches, ir.PolicyMatch{Match: ir.Match{Headers: []string{fmt.Sprintf("x=%d", i)}}})
	}
	key := ir.RouteKey{Kind: ir.KindHTTPRoute, NamespacedName: nn("hostile", "app")}
	hostile := policy("p", []ir.PolicyTarget{{Route: ir.KindHTTPRoute, NamespacedName: key.NamespacedName}}, denies("a", matches...))
	refused := *hostile
	refused.Refused = map[ir.RouteKey]string{key: "too many"}
	cases := map[string]struct {
		reason  string
		policy  *ir.RoutePolicy
		routes  int
		config  int
		refused int
	}{
		"Refused": {
			reason: "All requests of a route that the index refuses should be denied.",
			policy: &refused, routes: 3, refused: 3,
		},
		"Measured": {
			reason: "So should those beyond the limit by measure, such as of routes to which much is attached.",
			policy: hostile, routes: 20, config: 64 << 10, refused: 17,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			resources := policed()
			var routes []*routev3.Route
			for i := range tc.routes {
				r := egRoute(fmt.Sprintf("httproute/hostile/app/rule/%d/match/0/www_example_com", i), prefix("/"), to(rule0))
				r.TypedPerFilterConfig = map[string]*anypb.Any{"large": toAny(wrapperspb.String(strings.Repeat("x", tc.config)))}
				routes = append(routes, r)
			}
			resources.Routes[0].VirtualHosts[0].Routes = slices.Concat(routes, resources.Routes[0].GetVirtualHosts()[0].GetRoutes())
			n := proto.Size(resources.Routes[0])
			s := ir.NewSnapshot(ir.Contents{Policies: []*ir.RoutePolicy{tc.policy, policy("victim", toRoute(""), denies("a", under("/admin")))}})
			out, summary := Translate(s, testSource, resources)
			if summary.Denied != tc.refused {
				t.Errorf("%s: %d routes are refused, want %d", tc.reason, summary.Denied, tc.refused)
			}
			if grown := proto.Size(out.Routes[0]) - n; grown > measured*limits.NamespaceInsertions+64<<10 {
				t.Errorf("%s: the message grew by %d bytes", tc.reason, grown)
			}
			n = 0
			denied := false
			for _, r := range out.Routes[0].GetVirtualHosts()[0].GetRoutes() {
				switch {
				case strings.HasPrefix(r.GetName(), policyPrefix+"refused/"):
					n++
					if r.GetDirectResponse().GetStatus() != 403 || !proto.Equal(r.GetMatch(), prefix("/")) {
						t.Errorf("%s: %v", tc.reason, r)
					}
				case strings.HasPrefix(r.GetName(), policyPrefix+"default/victim/"):
					denied = true
				}
			}
			if n != tc.refused || !denied {
				t.Errorf("%s: %d routes deny, want %d; the policy of another tenant applies: %t", tc.reason, n, tc.refused, denied)
			}
			if err := validate(out); err != nil {
				t.Error(err)
			}
			want := marshal(t, out)
			if second, _ := Translate(s, testSource, clone(out)); !slices.Equal(marshal(t, second), want) {
				t.Errorf("%s: a second translation changes the routes", tc.reason)
			}
		})
	}
}

// TestRouteSize checks that a route's size is exact, and that measuring does not change the route.
func TestRouteSize(t *testing.T) {
	long := to(strings.Repeat("x", 300))
	described := func(m *corev3.Metadata) *routev3.Route {
		r := egRoute("a", prefix("/"), long)
		r.Metadata = m
		return r
	}
	values, err := structpb.NewStruct(map[string]any{
		"text": strings.Repeat("x", 200), "empty": "", "number": 1.5, "bool": true, "null": nil,
		"list": []any{"a", 1, []any{}, map[string]any{}}, "map": map[string]any{"a": map[string]any{"b": strings.Repeat("x", 20000)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	values.Fields["none"] = &structpb.Value{}
	cases := map[string]struct {
		reason string
		route  *routev3.Route
	}{
		"EG":       {reason: "Metadata of Envoy Gateway counts.", route: described(ofResource("HTTPRoute", "app", "section"))},
		"Values":   {reason: "So do all kinds of values.", route: described(&corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"a": values, "b": {}, "": {}}})},
		"Typed":    {reason: "So does typed metadata.", route: described(&corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"a": values}, TypedFilterMetadata: map[string]*anypb.Any{"a": toAny(wrapperspb.String("b"))}})},
		"Nothing":  {reason: "Empty metadata has a length.", route: described(&corev3.Metadata{})},
		"Short":    {reason: "The length of a short action takes one byte.", route: egRoute("a", prefix("/"), to("b"))},
		"Long":     {reason: "The length of a long action takes more.", route: egRoute("a", prefix("/"), long)},
		"Empty":    {reason: "An empty action has a length.", route: &routev3.Route{Name: "a", Action: &routev3.Route_Route{Route: &routev3.RouteAction{}}}},
		"Answer":   {reason: "Another action has no separate size.", route: refuse(egRoute("a", prefix("/"), long))},
		"NoAction": {reason: "Nor has a route without an action.", route: &routev3.Route{Name: "a"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			original := proto.CloneOf(tc.route)
			action := proto.Size(original.GetRoute())
			want := routeSize{action: action, rest: proto.Size(original) - action}
			if got := newRouteSize(tc.route); got != want {
				t.Errorf("\n%s\nnewRouteSize(...): got %+v, want %+v", tc.reason, got, want)
			}
			if !proto.Equal(original, tc.route) {
				t.Errorf("\n%s\nnewRouteSize(...) changed the route:\n%v", tc.reason, tc.route)
			}
		})
	}
}
