// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package localapi

import (
	"net/netip"
	"testing"
	"time"

	"tailscale.com/ipn"
	"tailscale.com/ipn/ipnstate"
	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
	"tailscale.com/types/views"
)

// TestOffline checks where the offline state of a device comes from: tailscaled's first
// notification, a whole node, or a patch of a node.
func TestOffline(t *testing.T) {
	at := netip.MustParsePrefix("100.64.0.9/32")
	connected, disconnected := true, false
	allowed := views.SliceOf([]netip.Prefix{at})
	status := func(online bool, seen time.Time) ipn.Notify {
		return ipn.Notify{InitialStatus: &ipnstate.Status{Peer: map[key.NodePublic]*ipnstate.PeerStatus{
			key.NewNode().Public(): {NodeID: 1, DNSName: "db.example.ts.net.", TailscaleIPs: []netip.Addr{at.Addr()}, AllowedIPs: &allowed, Online: online, LastSeen: seen},
		}}}
	}
	node := func(online *bool) ipn.Notify {
		return ipn.Notify{PeersChanged: []*tailcfg.Node{{ID: 1, Name: "db.example.ts.net.", Addresses: []netip.Prefix{at}, AllowedIPs: []netip.Prefix{at}, Online: online}}}
	}
	patch := func(id tailcfg.NodeID, online *bool) ipn.Notify {
		return ipn.Notify{PeerChangedPatch: []*tailcfg.PeerChange{{NodeID: id, Online: online}}}
	}
	p := NewPeers()
	for _, step := range []struct {
		reason  string
		n       ipn.Notify
		changed bool
		want    bool
	}{
		{reason: "The first status reports an online device.", n: status(true, time.Time{}), changed: true},
		{reason: "The first status does not know whether the device is online.", n: status(false, time.Time{}), changed: true},
		{reason: "The first status has the time when an offline device was last seen.", n: status(false, time.Unix(1, 0)), changed: true, want: true},
		{reason: "A patch can report a device as online.", n: patch(1, &connected), changed: true},
		{reason: "The same patch again changes nothing.", n: patch(1, &connected)},
		{reason: "A patch of another field changes nothing.", n: patch(1, nil)},
		{reason: "A patch of an unknown device changes nothing.", n: patch(2, &disconnected)},
		{reason: "A patch can report a device as offline.", n: patch(1, &disconnected), changed: true, want: true},
		{reason: "A whole node can report a device as online.", n: node(&connected), changed: true},
		{reason: "A whole node can report a device as offline.", n: node(&disconnected), changed: true, want: true},
		{reason: "A node without an online state counts as online.", n: node(nil), changed: true},
	} {
		changed := p.update(step.n)
		h := p.Find("100.64.0.9")
		if len(h.Devices) != 1 || h.Devices[0].Offline != step.want || changed != step.changed {
			t.Errorf("%s: want offline %t and changed %t, got %+v and %t", step.reason, step.want, step.changed, h.Devices, changed)
		}
	}
}
