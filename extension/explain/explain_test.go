// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

func named(n string) types.NamespacedName { return types.NamespacedName{Namespace: "shop", Name: n} }

func ours(n string, weight uint32) ir.BackendRef {
	return ir.BackendRef{Kind: ir.BackendServices, NamespacedName: named(n), Port: 80, Weight: weight}
}

func route(k ir.RouteKind, n string, hosts []string, rules ...ir.Rule) *ir.Route {
	return &ir.Route{
		Key:      ir.RouteKey{Kind: k, NamespacedName: named(n)},
		Gateways: []types.NamespacedName{named("gw")},
		Info:     ir.RouteInfo{Hostnames: hosts, Listeners: []string{"Gateway shop/gw"}},
		Rules:    rules,
	}
}

func rule(b string, ms ...ir.Match) ir.Rule {
	return ir.Rule{Matches: ms, Backends: []ir.BackendRef{ours(b, 1)}}
}

func prefix(p string) ir.Match { return ir.Match{PathType: "PathPrefix", Path: p} }

// TestExplainPolicies checks which rules of policies apply before a rule, the most specific first.
func TestExplainPolicies(t *testing.T) {
	routePolicy := func(name string, target ir.PolicyTarget, rules ...string) *ir.RoutePolicy {
		p := &ir.RoutePolicy{Name: named(name), Targets: []ir.Attachment{{PolicyTarget: target, Found: true}}}
		for i, r := range rules {
			p.Rules = append(p.Rules, &ir.PolicyRule{Policy: p.Name, Name: r, Index: i, Deny: true})
		}
		return p
	}
	s := ir.NewSnapshot(ir.Contents{
		Routes: []*ir.Route{route(ir.KindHTTPRoute, "a", nil, rule("web"))},
		Policies: []*ir.RoutePolicy{
			routePolicy("far", ir.PolicyTarget{NamespacedName: named("gw")}, "c"),
			routePolicy("near", ir.PolicyTarget{Route: ir.KindHTTPRoute, NamespacedName: named("a")}, "a", "b"),
			routePolicy("other", ir.PolicyTarget{Route: ir.KindHTTPRoute, NamespacedName: named("b")}, "d"),
		},
	})
	got := Explain(s, Query{Host: "web.example.com", Path: "/"}).Rules
	if len(got) != 1 {
		t.Fatalf("want one rule, got %v", got)
	}
	if diff := cmp.Diff([]string{"shop/near a", "shop/near b", "shop/far c"}, got[0].Policies); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestExplainPolicyRules checks the description of policies' rules.
func TestExplainPolicyRules(t *testing.T) {
	strict := ir.PolicyTarget{Route: ir.KindHTTPRoute, NamespacedName: named("strict"), Section: "careful"}
	client := &ir.ClientCertificate{Secret: named("client")}
	cases := map[string]struct {
		reason string
		rule   *ir.PolicyRule
		want   string
	}{
		"Plain":       {reason: "A rule should be described by its name.", rule: &ir.PolicyRule{Deny: true}, want: "shop/p a"},
		"Named":       {reason: "A rule with a named rule should be described with it.", rule: &ir.PolicyRule{Named: &ir.NamedRule{PolicyTarget: strict}}, want: "shop/p a: as rule careful of HTTPRoute shop/strict"},
		"NamedGone":   {reason: "A rule that answers 500 should be described with the reason.", rule: &ir.PolicyRule{Named: &ir.NamedRule{PolicyTarget: strict, Problem: "it is gone"}}, want: "shop/p a: answers 500, it is gone"},
		"Certificate": {reason: "A certificate should be described beside the named rule.", rule: &ir.PolicyRule{Named: &ir.NamedRule{PolicyTarget: strict}, Certificate: client}, want: "shop/p a: as rule careful of HTTPRoute shop/strict: presents the certificate of Secret shop/client"},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			tc.rule.Policy, tc.rule.Name = named("p"), "a"
			if got := policyRuleName(tc.rule); got != tc.want {
				t.Errorf("%s\npolicyRuleName(...): want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

func TestExplainOrder(t *testing.T) {
	old, young := time.Unix(1, 0), time.Unix(2, 0)
	aged := func(r *ir.Route, at time.Time) *ir.Route {
		r.Info.Created = at
		return r
	}
	web := []string{"web.example.com"}
	type found struct {
		Route      string
		Index      int
		Conditions []string
	}
	cases := map[string]struct {
		reason string
		routes []*ir.Route
		query  Query
		want   []found
		note   string
	}{
		"ExactHost": {
			reason: "An exact hostname should precede a wildcard with a longer path: Envoy considers no other host.",
			routes: []*ir.Route{
				route(ir.KindHTTPRoute, "a", []string{"*.example.com"}, rule("web", prefix("/long"))),
				route(ir.KindHTTPRoute, "b", web, rule("web", prefix("/"))),
			},
			query: Query{Host: "web.example.com", Path: "/long/x"},
			want:  []found{{Route: "HTTPRoute shop/b"}},
			note:  noteRest,
		},
		"NoOtherHost": {
			reason: "If the most specific host has no rule for the path, less specific ones should not match.",
			routes: []*ir.Route{
				route(ir.KindHTTPRoute, "a", []string{"*.example.com"}, rule("web", prefix("/"))),
				route(ir.KindHTTPRoute, "b", web, rule("web", prefix("/b"))),
			},
			query: Query{Host: "web.example.com", Path: "/a"},
			want:  []found{},
			note:  noteNone,
		},
		"LongerWildcard": {
			reason: "The longer of two wildcards should match, and a wildcard should never match the bare domain.",
			routes: []*ir.Route{
				route(ir.KindHTTPRoute, "a", []string{"*.example.com"}, rule("web")),
				route(ir.KindHTTPRoute, "b", []string{"*.eu.example.com"}, rule("web")),
			},
			query: Query{Host: "Shop.EU.example.com", Path: "/"},
			want:  []found{{Route: "HTTPRoute shop/b"}},
			note:  noteRest,
		},
		"PathTypes": {
			reason: "An exact path should precede a regular expression, and that a prefix, in one route or several.",
			routes: []*ir.Route{
				route(ir.KindHTTPRoute, "a", web, rule("web", prefix("/buy")), rule("web", ir.Match{PathType: "RegularExpression", Path: "/b.*"})),
				route(ir.KindHTTPRoute, "b", web, rule("web", ir.Match{PathType: "Exact", Path: "/buy"})),
			},
			query: Query{Host: "web.example.com", Path: "/buy"},
			want:  []found{{Route: "HTTPRoute shop/b"}},
			note:  noteRest,
		},
		"Segments": {
			reason: "A prefix ends at a slash.",
			routes: []*ir.Route{route(ir.KindHTTPRoute, "a", web, rule("web", prefix("/buy")), rule("web", prefix("/")))},
			query:  Query{Host: "web.example.com", Path: "/buyer"},
			want:   []found{{Route: "HTTPRoute shop/a", Index: 1}},
			note:   noteRest,
		},
		"Conditions": {
			reason: "A condition that the query does not state should be listed, and matches without one should follow.",
			routes: []*ir.Route{route(ir.KindHTTPRoute, "a", web,
				rule("web", prefix("/")),
				rule("web", ir.Match{PathType: "PathPrefix", Path: "/", Headers: []string{"x-canary=yes"}}),
				rule("web", ir.Match{PathType: "PathPrefix", Path: "/", Query: []string{"v=2"}}),
			)},
			query: Query{Host: "web.example.com", Path: "/"},
			want: []found{
				{Route: "HTTPRoute shop/a", Index: 1, Conditions: []string{"x-canary=yes"}},
				{Route: "HTTPRoute shop/a", Index: 2, Conditions: []string{"?v=2"}},
				{Route: "HTTPRoute shop/a"},
			},
			note: noteOnly,
		},
		"Method": {
			reason: "A rule for a method should precede one for all methods, and not match another method.",
			routes: []*ir.Route{route(ir.KindHTTPRoute, "a", web,
				rule("web"), rule("web", ir.Match{Method: "GET"}), rule("web", ir.Match{Method: "POST"}))},
			query: Query{Host: "web.example.com", Path: "/"},
			want:  []found{{Route: "HTTPRoute shop/a", Index: 1}},
			note:  noteRest,
		},
		"Older": {
			reason: "Among equals the older route should come first, then the first by name.",
			routes: []*ir.Route{
				aged(route(ir.KindHTTPRoute, "a", web, rule("web")), young),
				aged(route(ir.KindHTTPRoute, "b", web, rule("web")), old),
			},
			query: Query{Host: "web.example.com", Path: "/"},
			want:  []found{{Route: "HTTPRoute shop/b"}},
			note:  noteRest,
		},
		"GRPC": {
			reason: "A GRPCRoute's rules are paths.",
			routes: []*ir.Route{route(ir.KindGRPCRoute, "a", web, rule("web", ir.Match{PathType: "Exact", Path: "/shop.Cart/Add"}))},
			query:  Query{Host: "web.example.com", Path: "/shop.Cart/Add", Method: "POST"},
			want:   []found{{Route: "GRPCRoute shop/a"}},
			note:   noteRest,
		},
		"TLS": {
			reason: "A query without a path should match TLS passthrough, by host only.",
			routes: []*ir.Route{
				route(ir.KindHTTPRoute, "a", web, rule("web")),
				route(ir.KindTLSRoute, "b", web, rule("web")),
			},
			query: Query{Host: "web.example.com"},
			want:  []found{{Route: "TLSRoute shop/b"}},
			note:  noteRest,
		},
		"AnyHost": {
			reason: "A route without hostnames should match hosts that no other route has.",
			routes: []*ir.Route{route(ir.KindHTTPRoute, "a", nil, rule("web")), route(ir.KindHTTPRoute, "b", web, rule("web"))},
			query:  Query{Host: "other.example.com", Path: "/"},
			want:   []found{{Route: "HTTPRoute shop/a"}},
			note:   noteRest,
		},
		"BadExpression": {
			reason: "An invalid expression should match nothing.",
			routes: []*ir.Route{route(ir.KindHTTPRoute, "a", web, rule("web", ir.Match{PathType: "RegularExpression", Path: "("}))},
			query:  Query{Host: "web.example.com", Path: "/("},
			want:   []found{},
			note:   noteNone,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := Explain(ir.NewSnapshot(ir.Contents{Routes: tc.routes}), tc.query)
			got := []found{}
			for _, f := range a.Rules {
				got = append(got, found{Route: f.Route, Index: f.Index, Conditions: f.Conditions})
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nExplain(...): -want rules, +got rules:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.note, a.Note); diff != "" {
				t.Errorf("\n%s\nExplain(...): -want note, +got note:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestExplainBackends(t *testing.T) {
	web := ir.TargetKey{Kind: ir.TargetServices, Namespace: "shop", Name: "web", Port: 80, Protocol: ir.ProtocolHTTP}
	none := web
	none.Name = "none"
	mixed := ir.Rule{Backends: []ir.BackendRef{
		ours("web", 2), ours("none", 1),
		{Kind: ir.BackendServices, NamespacedName: types.NamespacedName{Namespace: "other", Name: "web"}, Port: 80},
		{Kind: ir.BackendService, NamespacedName: named("plain"), Port: 8080, Weight: 1},
	}, Exclusive: true}
	r := route(ir.KindHTTPRoute, "a", nil, mixed)
	a := Explain(ir.NewSnapshot(ir.Contents{
		Revision: 7,
		Routes:   []*ir.Route{r},
		Targets: []*ir.Target{
			{Key: none, Missing: true, Problem: "it does not exist"},
			{
				Key:   web,
				Shape: ir.Shape{HealthCheck: &ir.HealthCheck{Path: "/health", Interval: 5 * time.Second, Timeout: time.Second, Healthy: 1, Unhealthy: 2}},
				Localities: []ir.Locality{
					{Name: "web", Zone: "a", Weight: 1, Endpoints: []ir.Endpoint{{Address: "10.0.0.1", Port: 8080, Health: ir.Healthy}}},
					{Name: "far", Priority: ir.PriorityRemote, Weight: 1, Endpoints: []ir.Endpoint{{Address: "fd00::1", Port: 10007}}},
				},
			},
		},
	}), Query{Host: "web.example.com", Path: "/"})
	want := Answer{Query: Query{Host: "web.example.com", Path: "/"}, Revision: 7, Note: noteRest, Rules: []Found{{
		Match: "any path",
		Rule: Rule{
			Route: "HTTPRoute shop/a", Listeners: []string{"Gateway shop/gw"}, Matches: []string{"any path"},
			Own: "the rule has settings that a shared cluster cannot have, such as session persistence, or shares an L4 route with other rules",
			Backends: []Backend{
				{
					Name: "TailscaleServices shop/web:80", Percent: 50, Target: "tailscale/services/shop/web/80/http", Cluster: r.RuleName(0),
					Check: "GET /health each 5s, at most 1s; healthy after 1, unhealthy after 2",
					Localities: []Locality{
						{Name: "web", Zone: "a", Meaning: "first", Weight: 1, Endpoints: []Endpoint{{Address: "10.0.0.1:8080", Health: "healthy"}}},
						{Name: "far", Priority: 1, Meaning: "only as far as priorities below 1 have too few healthy endpoints", Weight: 1, Endpoints: []Endpoint{{Address: "[fd00::1]:10007", Health: "decided by Envoy's own checks"}}},
					},
				},
				{Name: "TailscaleServices shop/none:80", Percent: 25, Target: "tailscale/services/shop/none/80/http", Cluster: r.RuleName(0), Problem: "it does not exist"},
				{Name: "TailscaleServices other/web:80", Target: "tailscale/services/other/web/80/http", Cluster: r.RuleName(0), Problem: "No ReferenceGrant in namespace other permits the reference; L4 routes can name only backends in their namespace"},
				{Name: "Service shop/plain:8080", Percent: 25},
			},
		},
	}}}
	if diff := cmp.Diff(want, a, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".rank" }, cmp.Ignore())); diff != "" {
		t.Errorf("Explain(...): -want, +got:\n%s", diff)
	}
}

// TestExplainCluster checks the cluster names against those that package hooks uses.
func TestExplainCluster(t *testing.T) {
	const web = "tailscale/services/shop/web/80/"
	other := ir.BackendRef{Kind: ir.BackendOther, NamespacedName: named("bucket"), Weight: 1, Index: 1}
	own := ir.Rule{Name: "called", Exclusive: true, Backends: []ir.BackendRef{ours("web", 1)}}
	mixed := own
	mixed.Backends = append(mixed.Backends[:1:1], other)
	cases := map[string]struct {
		reason string
		kind   ir.RouteKind
		rule   ir.Rule
		pinned []string
		want   string
	}{
		"Shared":  {reason: "A rule without settings should share.", kind: ir.KindHTTPRoute, rule: rule("web"), want: web + "http"},
		"Own":     {reason: "One with settings should have its route's cluster.", kind: ir.KindHTTPRoute, rule: own, want: web + "http/httproute/shop/a"},
		"Pinned":  {reason: "One with a policy of the route should have its route's cluster.", kind: ir.KindGRPCRoute, rule: rule("web"), pinned: []string{""}, want: web + "grpc/grpcroute/shop/a"},
		"OfRule":  {reason: "A policy of the rule should give the rule a separate cluster.", kind: ir.KindHTTPRoute, rule: own, pinned: []string{"called"}, want: web + "http/httproute/shop/a/rule/called"},
		"Mixed":   {reason: "A Tailscale backend beside one that only Envoy Gateway knows should be separate.", kind: ir.KindHTTPRoute, rule: mixed, want: web + "http/httproute/shop/a"},
		"L4":      {reason: "An L4 route should have Envoy Gateway's cluster.", kind: ir.KindTCPRoute, rule: own, want: "tcproute/shop/a/rule/-1"},
		"L4Mixed": {reason: "It should have one for each backend if it splits.", kind: ir.KindTCPRoute, rule: mixed, want: "tcproute/shop/a/rule/-1/backend/0"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := route(tc.kind, "a", nil, tc.rule)
			s := ir.NewSnapshot(ir.Contents{Routes: []*ir.Route{r}, Pinned: map[ir.RouteKey][]string{r.Key: tc.pinned}})
			if got := describeRule(s, r, 0).Backends[0].Cluster; got != tc.want {
				t.Errorf("%s\nwant cluster %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}
