// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

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

	target := func(ns, name string, p Protocol, address string) *Target {
		return &Target{
			Key:        TargetKey{Kind: TargetServices, Namespace: ns, Name: name, Port: 80, Protocol: p},
			Shape:      Shape{HealthThreshold: 70},
			Localities: at(address),
		}
	}
	s := NewSnapshot(Contents{
		Routes: []*Route{
			{Key: RouteKey{Kind: KindHTTPRoute, NamespacedName: named("shop", "r")}, Rules: []Rule{mixed, second}},
			{Key: RouteKey{Kind: KindTCPRoute, NamespacedName: named("shop", "l4")}, Rules: []Rule{{Backends: []BackendRef{ref(BackendServices, "web", 1, 0), far}}}},
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
	web := Share{Weight: 7, HealthThreshold: 70, Localities: at("10.0.0.1")}
	plain := Share{Weight: 3, Localities: at("10.0.0.5")}
	weigh := func(w uint32, s Share) Share {
		s.Weight = w
		return s
	}

	type want struct {
		shares []Share
		known  bool
	}
	cases := map[string]struct {
		reason string
		name   string
		want   want
	}{
		"Target": {
			reason: "A shared cluster's name should be its target.",
			name:   "tailscale/services/shop/web/80/http",
			want:   want{shares: []Share{weigh(1, web)}, known: true},
		},
		"UnknownTarget": {
			reason: "A target that no route names should be unknown.",
			name:   "tailscale/services/shop/web/81/http",
		},
		"Rule": {
			reason: "A rule should be all of its backends that have a weight and that we have endpoints for.",
			name:   RuleName("httproute/shop/r/rule/0", &mixed),
			want:   want{shares: []Share{web, plain}, known: true},
		},
		"RuleByIndex": {
			reason: "A name without a hash should be what stands there.",
			name:   "tailscale/rule/httproute/shop/r/rule/0",
			want:   want{shares: []Share{web, plain}, known: true},
		},
		"Backend": {
			reason: "A cluster of one backend should have that one's endpoints, and no part of anything.",
			name:   RuleName("httproute/shop/r/rule/0/backend/1", &mixed),
			want:   want{shares: []Share{weigh(1, plain)}, known: true},
		},
		"BackendNotThere": {
			reason: "A backend that the rule does not have should be unknown.",
			name:   RuleName("httproute/shop/r/rule/0/backend/9", &mixed),
		},
		"MovedRule": {
			reason: "A rule should be found by its backends when another one stands at its index.",
			name:   RuleName("httproute/shop/r/rule/0", &second),
			want:   want{shares: []Share{weigh(1, web), {Weight: 5, HealthThreshold: 70, Localities: at("10.0.0.3")}}, known: true},
		},
		"NewWeights": {
			reason: "Weights should not be part of a rule's identity, so that they change in place.",
			name:   RuleName("httproute/shop/r/rule/1", &twin),
			want:   want{shares: []Share{weigh(1, web), {Weight: 5, HealthThreshold: 70, Localities: at("10.0.0.3")}}, known: true},
		},
		"OtherRule": {
			reason: "A rule that is gone should be unknown, and not what took its place.",
			name:   RuleName("httproute/shop/r/rule/0", &Rule{Backends: []BackendRef{far}}),
		},
		"L4": {
			reason: "Routes of L4 have one cluster, and refer to nothing in other namespaces.",
			name:   "tailscale/rule/tcproute/shop/l4/rule/-1",
			want:   want{shares: []Share{{Weight: 1, HealthThreshold: 70, Localities: at("10.0.0.2")}}, known: true},
		},
		"NoRoute": {
			reason: "A route that we have not heard of should be unknown.",
			name:   "tailscale/rule/httproute/shop/none/rule/0",
		},
		"NoRule": {
			reason: "A rule that the route does not have should be unknown.",
			name:   "tailscale/rule/httproute/shop/r/rule/7",
		},
		"NotOurs": {
			reason: "Names that we did not give should be unknown.",
			name:   "httproute/shop/r/rule/0",
		},
		"Malformed":        {reason: "Nonsense should be unknown.", name: "tailscale/rule/httproute/shop/r/rule/x"},
		"MalformedBackend": {reason: "Nonsense should be unknown.", name: "tailscale/rule/httproute/shop/r/rule/0/backend/-2"},
		"Short":            {reason: "Nonsense should be unknown.", name: "tailscale/rule/httproute/shop"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			shares, known := s.Shares(tc.name)
			got := want{shares: shares, known: known}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("\n%s\nShares(%q): -want, +got:\n%s", tc.reason, tc.name, diff)
			}
		})
	}
}

func FuzzShares(f *testing.F) {
	s := NewSnapshot(Contents{Routes: []*Route{{
		Key:   RouteKey{Kind: KindHTTPRoute, NamespacedName: types.NamespacedName{Namespace: "a", Name: "b"}},
		Rules: []Rule{{}},
	}}})
	f.Add("tailscale/rule/httproute/a/b/rule/0/backend/0@00")
	f.Add("tailscale/services/a/b/80/http")
	f.Fuzz(func(t *testing.T, name string) {
		if _, known := s.Shares(name); known && !strings.HasPrefix(name, "tailscale/") {
			t.Errorf("%q is no name of ours", name)
		}
	})
}
