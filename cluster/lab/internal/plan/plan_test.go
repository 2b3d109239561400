// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestClusters(t *testing.T) {
	type want struct {
		names []string
		err   error
	}
	cases := map[string]struct {
		reason string
		n      int
		family IPFamily
		want   want
	}{
		"One": {
			reason: "One cluster should be the first.",
			n:      1,
			want:   want{names: []string{"one"}},
		},
		"All": {
			reason: "As many clusters as there are names should be planned.",
			n:      MaxClusters,
			want:   want{names: names[:MaxClusters]},
		},
		"ErrNone": {
			reason: "A lab without a cluster should be refused.",
			n:      0,
			want:   want{err: cmpopts.AnyError},
		},
		"ErrTooMany": {
			reason: "More clusters than ranges should be refused.",
			n:      MaxClusters + 1,
			want:   want{err: cmpopts.AnyError},
		},
		"ErrFamily": {
			reason: "An unknown family should be refused.",
			n:      1,
			family: "ipv5",
			want:   want{err: cmpopts.AnyError},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Clusters(tc.n, tc.family)
			if diff := cmp.Diff(tc.want.err, err, cmpopts.EquateErrors()); diff != "" {
				t.Fatalf("\n%s\nClusters(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			var names []string
			for _, c := range got {
				names = append(names, c.Name)
			}
			if diff := cmp.Diff(tc.want.names, names); diff != "" {
				t.Errorf("\n%s\nClusters(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestClustersShareNothing(t *testing.T) {
	for _, f := range []IPFamily{IPv4, Dual, IPv6} {
		t.Run(string(f), func(t *testing.T) { shareNothing(t, f) })
	}
	if IsNamespace("tsgw-other") {
		t.Error("IsNamespace(...): got true for a name that is not the lab's")
	}
}

func shareNothing(t *testing.T, f IPFamily) {
	all, err := Clusters(MaxClusters, f)
	if err != nil {
		t.Fatal(err)
	}
	ranges := []netip.Prefix{netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("fd7a:115c:a1e0::/48")}
	hubs := map[bool]netip.Prefix{}
	for _, p := range f.Hub().Addresses {
		hubs[p.Addr().Is6()] = p.Masked()
		ranges = append(ranges, p.Masked())
	}
	wans := map[netip.Addr]bool{}
	for _, p := range f.Hub().Clients {
		wans[p.Addr()] = true
	}
	tailnets, err := Tailnets(MaxTailnets, f)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range tailnets {
		wans[n.Address] = true
	}
	for _, c := range all {
		for _, n := range c.Networks() {
			for _, r := range []netip.Prefix{n.Pods, n.Services, n.LoadBalancers} {
				for _, other := range ranges {
					if r.Overlaps(other) {
						t.Errorf("cluster %q: %s overlaps %s", c.Name, r, other)
					}
				}
				ranges = append(ranges, r)
			}
			if !n.Pods.Contains(n.Node) || !n.Services.Contains(n.API) || !n.Services.Contains(n.DNS) {
				t.Errorf("cluster %q: node %s, API %s or DNS %s is out of range", c.Name, n.Node, n.API, n.DNS)
			}
			if w := n.WAN; hubs[w.Addr().Is6()] != w.Masked() || wans[w.Addr()] {
				t.Errorf("cluster %q: %s is not a unique address on the hub", c.Name, w)
			}
			wans[n.WAN.Addr()] = true
		}
		if !IsNamespace(c.Namespace) {
			t.Errorf("cluster %q: IsNamespace(%q) is false", c.Name, c.Namespace)
		}
	}
}
