// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package localapi_test

import (
	"net/netip"
	"testing"

	"tailscale.com/ipn"
	"tailscale.com/tailcfg"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi/localapitest"
)

func TestFollow(t *testing.T) {
	const own, service, routed = "100.64.0.9", "100.100.0.1", "10.1.2.3"
	self := &tailcfg.Node{Name: "self.example.ts.net."}
	db := localapitest.Peer(1, "db", nil, []string{own}, service+"/32", "10.1.0.0/16")
	cases := map[string]struct {
		reason string
		addr   string
		update ipn.Notify
		want   localapi.Presence
	}{
		"Stays": {
			reason: "A node that only changes has its connections.",
			addr:   own,
			update: ipn.Notify{PeersChanged: []*tailcfg.Node{localapitest.Peer(1, "db2", []string{"tag:db"}, []string{own})}},
		},
		"Removed": {
			reason: "A node that has left the netmap has none.",
			addr:   own,
			update: ipn.Notify{PeersRemoved: []tailcfg.NodeID{1}},
			want:   localapi.Absent,
		},
		"LeftOut": {
			reason: "A node that a whole new netmap lacks has none.",
			addr:   own,
			update: ipn.Notify{SelfChange: self},
			want:   localapi.Absent,
		},
		"Replaced": {
			reason: "Another node with the same address does not have them.",
			addr:   own,
			update: ipn.Notify{SelfChange: self, PeersChanged: []*tailcfg.Node{localapitest.Peer(2, "db", nil, []string{own})}},
			want:   localapi.Moved,
		},
		"ServiceMoved": {
			reason: "The new host of a service does not have the connections of the previous one.",
			addr:   service,
			update: ipn.Notify{PeersChanged: []*tailcfg.Node{
				localapitest.Peer(1, "db", nil, []string{own}), localapitest.Peer(2, "other", nil, []string{"100.64.0.10"}, service+"/32"),
			}},
			want: localapi.Moved,
		},
		"RouterReplaced": {
			reason: "A connection can continue through another subnet router.",
			addr:   routed,
			update: ipn.Notify{SelfChange: self, PeersChanged: []*tailcfg.Node{localapitest.Peer(2, "other", nil, []string{"100.64.0.10"}, "10.1.0.0/16")}},
		},
		"RouterGone": {
			reason: "Without a subnet router it cannot.",
			addr:   routed,
			update: ipn.Notify{PeersRemoved: []tailcfg.NodeID{1}},
			want:   localapi.Absent,
		},
		"NotFound": {
			reason: "If the node was not known when the connection was opened, any node with the address counts.",
			addr:   "100.64.0.10",
			update: ipn.Notify{PeersChanged: []*tailcfg.Node{localapitest.Peer(2, "other", nil, []string{"100.64.0.10"})}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			peers := localapi.NewPeers()
			prefs := &ipn.Prefs{RouteAll: true}
			view := prefs.View()
			localapi.Update(peers, ipn.Notify{Prefs: &view, SelfChange: self, PeersChanged: []*tailcfg.Node{db}})
			presence := peers.Follow(netip.MustParseAddr(tc.addr))
			if name != "NotFound" && presence() != localapi.Present {
				t.Fatalf("a connection to %s has just been opened", tc.addr)
			}
			localapi.Update(peers, tc.update)
			if got := presence(); got != tc.want {
				t.Errorf("\n%s\nwant %d, got %d", tc.reason, tc.want, got)
			}
		})
	}
}
