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

// TestOffline shows how it is known that a device is offline: by tailscaled's first word, by a
// whole node, and by a patch of one.
func TestOffline(t *testing.T) {
	at := netip.MustParsePrefix("100.64.0.9/32")
	yes, no := true, false
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
		{reason: "Tailscaled tells of one that is online.", n: status(true, time.Time{}), changed: true},
		{reason: "It may not know.", n: status(false, time.Time{}), changed: true},
		{reason: "Of one that is offline it knows when it was seen last.", n: status(false, time.Unix(1, 0)), changed: true, want: true},
		{reason: "A patch brings it back.", n: patch(1, &yes), changed: true},
		{reason: "Again is nothing new.", n: patch(1, &yes)},
		{reason: "A patch of something else is nothing.", n: patch(1, nil)},
		{reason: "Nor is one of a device that nobody knows.", n: patch(2, &no)},
		{reason: "A patch takes it away.", n: patch(1, &no), changed: true, want: true},
		{reason: "A whole node tells, too.", n: node(&yes), changed: true},
		{reason: "It does.", n: node(&no), changed: true, want: true},
		{reason: "One of which nobody says anything is taken for online.", n: node(nil), changed: true},
	} {
		changed := p.update(step.n)
		h := p.Find("100.64.0.9")
		if len(h.Devices) != 1 || h.Devices[0].Offline != step.want || changed != step.changed {
			t.Errorf("%s: want offline %t and changed %t, got %+v and %t", step.reason, step.want, step.changed, h.Devices, changed)
		}
	}
}
