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
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Clusters(tc.n)
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
	all, err := Clusters(MaxClusters)
	if err != nil {
		t.Fatal(err)
	}
	hub := netip.PrefixFrom(netip.MustParseAddr(HubAddress), HubBits).Masked()
	ranges := []netip.Prefix{hub, netip.MustParsePrefix("100.64.0.0/10")}
	wans := map[netip.Addr]bool{netip.MustParseAddr(ClientAddress): true}
	tailnets, err := Tailnets(MaxTailnets)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range tailnets {
		wans[n.Address] = true
	}
	for _, c := range all {
		for _, r := range []netip.Prefix{c.Pods, c.Services, c.LoadBalancers} {
			for _, other := range ranges {
				if r.Overlaps(other) {
					t.Errorf("cluster %q: %s overlaps %s", c.Name, r, other)
				}
			}
			ranges = append(ranges, r)
		}
		if !c.Pods.Contains(c.Node) || !c.Services.Contains(c.API) || !c.Services.Contains(c.DNS) {
			t.Errorf("cluster %q: node %s, API %s or DNS %s is out of range", c.Name, c.Node, c.API, c.DNS)
		}
		if !hub.Contains(c.WAN) || wans[c.WAN] {
			t.Errorf("cluster %q: %s is not a unique address on the hub", c.Name, c.WAN)
		}
		wans[c.WAN] = true
		if !IsNamespace(c.Namespace) {
			t.Errorf("cluster %q: IsNamespace(%q) is false", c.Name, c.Namespace)
		}
	}
	if IsNamespace("tsgw-other") {
		t.Error("IsNamespace(...): a name of others is taken for the lab's")
	}
}
