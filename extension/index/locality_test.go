// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
	"math"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// in returns as many endpoints in each zone as its number says.
func in(zones ...int) []zonedEndpoint {
	var out []zonedEndpoint
	for z, n := range zones {
		for i := range n {
			out = append(out, zonedEndpoint{zone: strconv.Itoa(z), Endpoint: ir.Endpoint{Address: fmt.Sprintf("10.0.%d.%d", z, i)}})
		}
	}
	return out
}

func TestLocalityWeights(t *testing.T) {
	cases := map[string]struct {
		reason  string
		sources []source
		want    map[string]uint32
	}{
		"OneZone": {
			reason:  "Weights should stay the same if no source is in several zones.",
			sources: []source{{name: "a", weight: 7, endpoints: in(3)}, {name: "b", weight: 3}},
			want:    map[string]uint32{"a/0": 7, "b/": 3},
		},
		"Zones": {
			reason:  "Zones should share a weight exactly in proportion to their endpoints, beside a source in one zone.",
			sources: []source{{name: "a", weight: 1, endpoints: in(1, 2)}, {name: "b", weight: 1, endpoints: in(3, 2)}, {name: "c", weight: 2, endpoints: in(4)}},
			want:    map[string]uint32{"a/0": 5, "a/1": 10, "b/0": 9, "b/1": 6, "c/0": 30},
		},
		"Priorities": {
			reason:  "Each priority should have separate weights.",
			sources: []source{{name: "a", weight: 5, endpoints: in(1, 1)}, {name: "b", priority: 1, weight: 5, endpoints: in(1)}},
			want:    map[string]uint32{"a/0": 5, "a/1": 5, "b/0": 5},
		},
		"None": {
			reason:  "A source of weight 0 should have no locality.",
			sources: []source{{name: "a", weight: 0, endpoints: in(1)}},
			want:    map[string]uint32{},
		},
		"Large": {
			reason:  "The sum of the weights of a priority should fit into 32 bits.",
			sources: []source{{name: "a", weight: 1000000, endpoints: in(1, 10006)}, {name: "b", weight: 3000000, endpoints: in(2)}},
			want:    map[string]uint32{"a/0": 53650, "a/1": 536817262, "b/0": 1610612735},
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			got := map[string]uint32{}
			sum := uint64(0)
			for _, l := range localities(tc.sources) {
				got[l.Name+"/"+l.Zone] = l.Weight
				sum += uint64(l.Weight)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got\n%s", tc.reason, diff)
			}
			if sum > math.MaxUint32 {
				t.Errorf("%s\nthe sum of the weights is %d", tc.reason, sum)
			}
		})
	}
}

func TestClusterNames(t *testing.T) {
	k := ir.TargetKey{Kind: ir.TargetEndpoints, Namespace: "shop", Name: "edge", Port: 5432, Protocol: ir.ProtocolTCP}
	got, err := ir.ParseClusterName(k.ClusterName())
	if err != nil || got != k {
		t.Errorf("want %v back, got %v and %v", k, got, err)
	}
	for _, n := range []string{"", "tailscale/rule/httproute/shop/80/0123456789abcdef", "tailscale/services/shop/web/http/http", "x/services/shop/web/80/http"} {
		if got, err := ir.ParseClusterName(n); err == nil {
			t.Errorf("want an error for name %q, got %v", n, got)
		}
	}
	r := ir.RouteKey{Kind: ir.KindTLSRoute, NamespacedName: name("web")}
	if got, want := r.ClusterName(0), "tlsroute/shop/web/rule/-1"; got != want {
		t.Errorf("want %s, got %s", want, got)
	}
}
