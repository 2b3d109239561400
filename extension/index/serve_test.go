// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// TestServe checks that a store that serves some Gateways equals one that never received
// routes to other Gateways, and that it can be configured at any time.
func TestServe(t *testing.T) {
	// The route with several rules and a policy attaches to Gateway infra/gw2 by a
	// ListenerSet.
	gw2 := types.NamespacedName{Namespace: "infra", Name: "gw2"}
	all := append(everything(), identityOf("a", "gw", "http"))
	selected := func(n types.NamespacedName) bool { return n == gw2 }
	others := func(n types.NamespacedName) bool { return n != gw2 }
	cases := map[string]struct {
		reason string
		serves func(types.NamespacedName) bool
		want   []ir.RouteKey
	}{
		"All":    {reason: "By default a store should serve all Gateways.", want: []ir.RouteKey{{Kind: ir.KindHTTPRoute, NamespacedName: name("mixed")}, {Kind: ir.KindHTTPRoute, NamespacedName: name("web")}}},
		"Only":   {reason: "A route that attaches to a ListenerSet should attach to its Gateway.", serves: selected, want: []ir.RouteKey{{Kind: ir.KindHTTPRoute, NamespacedName: name("mixed")}}},
		"Others": {reason: "Routes to Gateways of other instances should not be known.", serves: others, want: []ir.RouteKey{{Kind: ir.KindHTTPRoute, NamespacedName: name("web")}}},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			late, early, back := NewStore(), NewStore(), NewStore()
			late.Serve(tc.serves)
			apply(t, late, false, all...)
			apply(t, early, false, all...)
			early.Serve(tc.serves)
			if diff := cmp.Diff(late.Snapshot(), early.Snapshot(), compareSnapshots()); diff != "" {
				t.Errorf("\n%s\nthe result depends on when Serve is called: -before, +after:\n%s", tc.reason, diff)
			}
			for _, k := range tc.want {
				if early.Snapshot().Route(k) == nil {
					t.Errorf("\n%s\nroute %s is not known", tc.reason, k)
				}
			}
			for p := range early.Snapshot().Policies().All() {
				for _, g := range p.Served {
					if tc.serves != nil && !tc.serves(g) {
						t.Errorf("\n%s\npolicy %s would make Envoy Gateway translate %s", tc.reason, p.Name, g)
					}
				}
			}
			for r := range early.Snapshot().Routes() {
				for _, g := range r.Gateways {
					if tc.serves != nil && !tc.serves(g) {
						t.Errorf("\n%s\nroute %s has Gateway %s", tc.reason, r.Key, g)
					}
				}
			}
			for _, g := range []types.NamespacedName{{Namespace: "infra", Name: "gw"}, gw2} {
				if _, ok := early.Snapshot().IdentityListeners(g); ok != (tc.serves == nil || tc.serves(g)) {
					t.Errorf("\n%s\nidentity listeners of %s are known: %t", tc.reason, g, ok)
				}
			}
			apply(t, back, false, all...)
			back.Serve(func(types.NamespacedName) bool { return false })
			back.Serve(tc.serves)
			if diff := cmp.Diff(late.Snapshot(), back.Snapshot(), compareSnapshots()); diff != "" {
				t.Errorf("\n%s\nthe store differs after other Gateways were served meanwhile: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
