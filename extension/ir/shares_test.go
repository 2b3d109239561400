// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

func TestShares(t *testing.T) {
	at := func(address string) []Locality {
		return []Locality{{Name: "local", Endpoints: []Endpoint{{Address: address, Port: 80}}}}
	}
	named := func(ns, name string) types.NamespacedName { return types.NamespacedName{Namespace: ns, Name: name} }
	ref := func(kind BackendKind, name string, weight uint32, i int) BackendRef {
		return BackendRef{Kind: kind, NamespacedName: named("shop", name), Port: 80, Weight: weight, Index: i}
	}
	far := ref(BackendServices, "far", 5, 1)
	far.Namespace = "other"

	mixed := Rule{Backends: []BackendRef{
		ref(BackendServices, "web", 7, 0),
		ref(BackendService, "plain", 3, 1),
		ref(BackendEndpoints, "off", 0, 2),
		ref(BackendOther, "bucket", 1, 3),
	}}
	second := Rule{Backends: []BackendRef{ref(BackendServices, "web", 1, 0), far}}
	twin := Rule{Backends: []BackendRef{ref(BackendServices, "web", 2, 0), far}}
	called := twin
	called.Name = "called"
	name := func(i int, rules ...Rule) string {
		r := &Route{Key: RouteKey{Kind: KindHTTPRoute, NamespacedName: named("shop", "r")}, Rules: rules}
		return r.RuleName(i)
	}
	l4 := &Route{Key: RouteKey{Kind: KindTCPRoute, NamespacedName: named("shop", "l4")}, Rules: []Rule{{Backends: []BackendRef{ref(BackendServices, "web", 1, 0), far}}}}

	target := func(ns, name string, p Protocol, address string) *Target {
		return &Target{
			Key:        TargetKey{Kind: TargetServices, Namespace: ns, Name: name, Port: 80, Protocol: p},
			Shape:      Shape{HealthThreshold: 70},
			Localities: at(address),
		}
	}
	s := NewSnapshot(Contents{
		Routes: []*Route{
			{Key: RouteKey{Kind: KindHTTPRoute, NamespacedName: named("shop", "r")}, Rules: []Rule{mixed, second, twin}},
			l4,
		},
		Targets: []*Target{
			target("shop", "web", ProtocolHTTP, "10.0.0.1"),
			target("shop", "web", ProtocolTCP, "10.0.0.2"),
			target("other", "far", ProtocolHTTP, "10.0.0.3"),
			target("other", "far", ProtocolTCP, "10.0.0.4"),
		},
		Services: map[ServicePort][]Locality{{NamespacedName: named("shop", "plain"), Port: 80}: at("10.0.0.5")},
		Grants:   []Grant{{Kind: KindHTTPRoute, Namespace: "shop", To: BackendServices, Object: named("other", "far")}},
	})
	web := EndpointShare{Weight: 7, HealthThreshold: 70, Localities: at("10.0.0.1")}
	plain := EndpointShare{Weight: 3, Localities: at("10.0.0.5")}
	weigh := func(w uint32, s EndpointShare) EndpointShare {
		s.Weight = w
		return s
	}

	type want struct {
		shares []EndpointShare
		found  bool
	}
	cases := map[string]struct {
		reason string
		name   string
		want   want
	}{
		"Target": {
			reason: "The name of a shared cluster should resolve to its target.",
			name:   "tailscale/services/shop/web/80/http",
			want:   want{shares: []EndpointShare{weigh(1, web)}, found: true},
		},
		"UnknownTarget": {
			reason: "A target that no route names should be unknown.",
			name:   "tailscale/services/shop/web/81/http",
		},
		"Rule": {
			reason: "A rule should resolve to all of its backends that have a weight and known endpoints.",
			name:   name(0, mixed),
			want:   want{shares: []EndpointShare{web, plain}, found: true},
		},
		"MovedRule": {
			reason: "A rule should be found by its backends when another rule has taken its index.",
			name:   name(0, second),
			want:   want{shares: []EndpointShare{weigh(1, web), {Weight: 5, HealthThreshold: 70, Localities: at("10.0.0.3")}}, found: true},
		},
		"NewWeights": {
			reason: "Weights should not be part of a rule's identity, so that they change in place.",
			name:   name(1, mixed, twin),
			want:   want{shares: []EndpointShare{weigh(1, web), {Weight: 5, HealthThreshold: 70, Localities: at("10.0.0.3")}}, found: true},
		},
		"Twin": {
			reason: "Two rules with the same backends should each keep their weights.",
			name:   name(1, second, twin),
			want:   want{shares: []EndpointShare{weigh(2, web), {Weight: 5, HealthThreshold: 70, Localities: at("10.0.0.3")}}, found: true},
		},
		"NoTwin": {
			reason: "A further rule with the same backends that does not exist should be unknown.",
			name:   name(2, second, twin, twin),
		},
		"OtherName": {
			reason: "A rule with another name should be a different rule.",
			name:   name(0, called),
		},
		"ConflictingRule": {
			reason: "A deleted rule should be unknown, and not resolve to the rule that took its index.",
			name:   name(0, Rule{Backends: []BackendRef{far}}),
		},
		"L4": {
			reason: "L4 routes have one cluster, and refer to no object in other namespaces.",
			name:   l4.RuleName(0),
			want:   want{shares: []EndpointShare{{Weight: 1, HealthThreshold: 70, Localities: at("10.0.0.2")}}, found: true},
		},
		"NoRoute": {
			reason: "A route that does not exist should be unknown.",
			name:   "tailscale/rule/httproute/shop/none/0123456789abcdef",
		},
		"NotOurs": {
			reason: "Names of Envoy Gateway should be unknown.",
			name:   "httproute/shop/r/rule/0",
		},
		"Malformed": {reason: "A malformed name should be unknown.", name: name(0, mixed) + "/x"},
		"First":     {reason: "The first rule should have one name only.", name: name(0, mixed) + "/0"},
		"Long":      {reason: "A malformed name should be unknown.", name: name(0, mixed) + "/1/1"},
		"Short":     {reason: "A malformed name should be unknown.", name: "tailscale/rule/httproute/shop"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			shares, ok := s.Shares(tc.name)
			got := want{shares: shares, found: ok}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("\n%s\nShares(%q): -want, +got:\n%s", tc.reason, tc.name, diff)
			}
		})
	}
}

// TestForeignService checks routes of all kinds that name a Service of another namespace
// beside an object of ours.
func TestForeignService(t *testing.T) {
	for _, k := range []RouteKind{KindHTTPRoute, KindGRPCRoute, KindTCPRoute, KindUDPRoute, KindTLSRoute} {
		ours := BackendRef{Kind: BackendServices, NamespacedName: name("web"), Port: 80, Weight: 1}
		plain := BackendRef{Kind: BackendService, NamespacedName: types.NamespacedName{Namespace: "bank", Name: "db"}, Port: 80, Weight: 1, Index: 1}
		r := &Route{Key: RouteKey{Kind: k, NamespacedName: name("r")}, Rules: []Rule{{Exclusive: true, Backends: []BackendRef{ours, plain}}}}
		c := Contents{
			Routes:   []*Route{r},
			Targets:  []*Target{{Key: ours.Target(k), Localities: []Locality{{Name: "web"}}}},
			Services: map[ServicePort][]Locality{plain.ServicePort(k): {{Name: "db"}}},
		}
		for _, tc := range []struct {
			reason string
			grants []Grant
			want   []string
		}{
			{reason: "Without a ReferenceGrant the Service should get no requests.", want: []string{"web"}},
			{
				reason: "A ReferenceGrant for another kind of route should change nothing.", want: []string{"web"},
				grants: []Grant{{Kind: "other", Namespace: "shop", To: BackendService, Object: plain.NamespacedName}},
			},
			{
				reason: "A ReferenceGrant should permit the reference.", want: []string{"web", "db"},
				grants: []Grant{{Kind: k, Namespace: "shop", To: BackendService, Object: plain.NamespacedName}},
			},
		} {
			c.Grants = tc.grants
			shares, _ := NewSnapshot(c).Shares(r.RuleName(0))
			var got []string
			for _, s := range shares {
				got = append(got, s.Localities[0].Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\n%s: Shares(...): -want, +got:\n%s", tc.reason, k, diff)
			}
		}
	}
}

func TestOwnName(t *testing.T) {
	k := RouteKey{Kind: KindHTTPRoute, NamespacedName: types.NamespacedName{Namespace: "shop", Name: "r"}}
	web := TargetKey{Kind: TargetServices, Namespace: "shop", Name: "web", Port: 80, Protocol: ProtocolHTTP}
	s := NewSnapshot(Contents{Pinned: map[RouteKey][]string{k: {"", "pinned"}}})
	const name = "tailscale/services/shop/web/80/http/httproute/shop/r"
	for rule, want := range map[string]string{"": name, "other": name, "pinned": name + "/rule/pinned"} {
		if got := s.RouteClusterName(k, rule, web); got != want {
			t.Errorf("RouteClusterName of rule %q: want %s, got %s", rule, want, got)
		}
	}
}

func FuzzShares(f *testing.F) {
	s := NewSnapshot(Contents{Routes: []*Route{{
		Key:   RouteKey{Kind: KindHTTPRoute, NamespacedName: types.NamespacedName{Namespace: "a", Name: "b"}},
		Rules: []Rule{{}},
	}}})
	f.Add("tailscale/rule/httproute/a/b/0123456789abcdef/1")
	f.Add("tailscale/services/a/b/80/http")
	f.Fuzz(func(t *testing.T, name string) {
		if _, ok := s.Shares(name); ok && !strings.HasPrefix(name, "tailscale/") {
			t.Errorf("%q is not one of our names", name)
		}
	})
}
