// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package localapi

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"tailscale.com/ipn"
	"tailscale.com/ipn/ipnstate"
	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
	"tailscale.com/types/views"
)

func TestRoutes(t *testing.T) {
	vip, other := netip.MustParseAddr("100.96.0.1"), netip.MustParseAddr("100.96.0.2")
	prefix := netip.PrefixFrom(vip, 32)
	peer := func(id tailcfg.NodeID, online bool, routes ...netip.Prefix) *tailcfg.Node {
		own := netip.MustParsePrefix("100.64.0.9/32")
		return &tailcfg.Node{ID: id, Addresses: []netip.Prefix{own}, AllowedIPs: append([]netip.Prefix{own}, routes...), PrimaryRoutes: routes, Online: &online}
	}
	status := func(primary ...netip.Prefix) ipn.Notify {
		self := &ipnstate.PeerStatus{}
		if len(primary) > 0 {
			v := views.SliceOf(primary)
			self.PrimaryRoutes = &v
		}
		return ipn.Notify{InitialStatus: &ipnstate.Status{Self: self, Peer: map[key.NodePublic]*ipnstate.PeerStatus{}}}
	}
	off := false
	cases := map[string]struct {
		reason   string
		notified []ipn.Notify
		want     Routes
	}{
		"Unknown": {reason: "Nothing is known before the first status.", notified: []ipn.Notify{{}}},
		"NoSelf":  {reason: "A status of a tailscaled without a network map says nothing.", notified: []ipn.Notify{{InitialStatus: &ipnstate.Status{}}}},
		"Null": {
			reason: "A status without PrimaryRoutes is of a node that is primary for nothing (tailscale/tailscale#19666).", notified: []ipn.Notify{status()},
			want: Routes{Reported: true},
		},
		"Primary": {reason: "The node's own PrimaryRoutes.", notified: []ipn.Notify{status(prefix)}, want: Routes{Reported: true, Primary: map[netip.Addr]bool{vip: true}}},
		"Lost": {
			reason: "A new network map without them.", notified: []ipn.Notify{status(prefix), {SelfChange: &tailcfg.Node{}}},
			want: Routes{Reported: true},
		},
		"Peer": {
			reason: "A peer that has the address is primary.", notified: []ipn.Notify{status(), {PeersChanged: []*tailcfg.Node{peer(2, true, prefix)}}},
			want: Routes{Reported: true, Others: map[netip.Addr]bool{vip: true}},
		},
		"TwoPeers": {
			reason:   "With regional routing several nodes have addresses.",
			notified: []ipn.Notify{status(prefix), {PeersChanged: []*tailcfg.Node{peer(2, true, prefix), peer(3, true, netip.PrefixFrom(other, 32))}}},
			want:     Routes{Reported: true, Primary: map[netip.Addr]bool{vip: true}, Others: map[netip.Addr]bool{vip: true, other: true}},
		},
		"Moved": {
			reason:   "A peer that lost the address is not primary any more.",
			notified: []ipn.Notify{status(), {PeersChanged: []*tailcfg.Node{peer(2, true, prefix)}}, {PeersChanged: []*tailcfg.Node{peer(2, true)}}},
			want:     Routes{Reported: true},
		},
		"Gone": {
			reason:   "A peer that was removed has nothing.",
			notified: []ipn.Notify{status(), {PeersChanged: []*tailcfg.Node{peer(2, true, prefix)}}, {PeersRemoved: []tailcfg.NodeID{2}}},
			want:     Routes{Reported: true},
		},
		"NewMap": {
			reason:   "A whole network map lists no peer that is gone.",
			notified: []ipn.Notify{status(), {PeersChanged: []*tailcfg.Node{peer(2, true, prefix)}}, {SelfChange: &tailcfg.Node{}}},
			want:     Routes{Reported: true},
		},
		"Offline": {
			reason:   "A disconnected peer answers nobody.",
			notified: []ipn.Notify{status(), {PeersChanged: []*tailcfg.Node{peer(2, true, prefix)}}, {PeerChangedPatch: []*tailcfg.PeerChange{{NodeID: 2, Online: &off}}}},
			want:     Routes{Reported: true},
		},
		"Subnets": {
			reason:   "Subnets and the peer's own address are of no service.",
			notified: []ipn.Notify{status(), {PeersChanged: []*tailcfg.Node{peer(2, true, netip.MustParsePrefix("10.0.0.1/32"), netip.MustParsePrefix("100.64.0.0/10"))}}},
			want:     Routes{Reported: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			table := newRouteTable()
			for _, n := range tc.notified {
				table.update(n)
			}
			if diff := cmp.Diff(tc.want, table.routes(), cmpopts.EquateEmpty(), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
				t.Errorf("\n%s\nroutes(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
