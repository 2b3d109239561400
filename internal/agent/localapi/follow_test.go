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
		want   bool
	}{
		"Stays": {
			reason: "A node that only changes has its connections.",
			addr:   own,
			update: ipn.Notify{PeersChanged: []*tailcfg.Node{localapitest.Peer(1, "db2", []string{"tag:db"}, []string{own})}},
			want:   true,
		},
		"Removed": {
			reason: "A node that has left the netmap has none.",
			addr:   own,
			update: ipn.Notify{PeersRemoved: []tailcfg.NodeID{1}},
		},
		"LeftOut": {
			reason: "A node that a whole new netmap lacks has none.",
			addr:   own,
			update: ipn.Notify{SelfChange: self},
		},
		"Replaced": {
			reason: "Another node with the same address does not have them.",
			addr:   own,
			update: ipn.Notify{SelfChange: self, PeersChanged: []*tailcfg.Node{localapitest.Peer(2, "db", nil, []string{own})}},
		},
		"ServiceMoved": {
			reason: "The new host of a service does not have the connections of the previous one.",
			addr:   service,
			update: ipn.Notify{PeersChanged: []*tailcfg.Node{
				localapitest.Peer(1, "db", nil, []string{own}), localapitest.Peer(2, "other", nil, []string{"100.64.0.10"}, service+"/32"),
			}},
		},
		"RouterReplaced": {
			reason: "A connection can continue through another subnet router.",
			addr:   routed,
			update: ipn.Notify{SelfChange: self, PeersChanged: []*tailcfg.Node{localapitest.Peer(2, "other", nil, []string{"100.64.0.10"}, "10.1.0.0/16")}},
			want:   true,
		},
		"RouterGone": {
			reason: "Without a subnet router it cannot.",
			addr:   routed,
			update: ipn.Notify{PeersRemoved: []tailcfg.NodeID{1}},
		},
		"NotFound": {
			reason: "If the node was not known when the connection was opened, any node with the address counts.",
			addr:   "100.64.0.10",
			update: ipn.Notify{PeersChanged: []*tailcfg.Node{localapitest.Peer(2, "other", nil, []string{"100.64.0.10"})}},
			want:   true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			peers := localapi.NewPeers()
			prefs := &ipn.Prefs{RouteAll: true}
			view := prefs.View()
			localapi.Update(peers, ipn.Notify{Prefs: &view, SelfChange: self, PeersChanged: []*tailcfg.Node{db}})
			present := peers.Follow(netip.MustParseAddr(tc.addr))
			if name != "NotFound" && !present() {
				t.Fatalf("a connection to %s has just been opened", tc.addr)
			}
			localapi.Update(peers, tc.update)
			if got := present(); got != tc.want {
				t.Errorf("\n%s\nwant %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}
