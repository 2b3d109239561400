// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/ipn/ipnstate"
	"tailscale.com/types/key"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

func TestCountPaths(t *testing.T) {
	st := &ipnstate.Status{Peer: map[key.NodePublic]*ipnstate.PeerStatus{}}
	for _, p := range []ipnstate.PeerStatus{
		{Active: true, CurAddr: "192.0.2.1:41641", Relay: "fra"},
		{Active: true, Relay: "fra"},
		{Active: true, PeerRelay: "192.0.2.9:7777:vni:1"},
		{Active: true},
		{CurAddr: "192.0.2.2:41641", Relay: "fra"},
		{Relay: "fra"},
	} {
		st.Peer[key.NewNode().Public()] = &p
	}
	if diff := cmp.Diff(v1alpha1.MachinePaths{Direct: 1, Relayed: 2}, countPaths(st)); diff != "" {
		t.Errorf("peers with traffic count by their path, and those of no known path do not: -want, +got:\n%s", diff)
	}
}

func TestNextPaths(t *testing.T) {
	type paths = v1alpha1.MachinePaths
	cases := map[string]struct {
		reason   string
		reported *paths
		seen     paths
		want     *paths
	}{
		"Idle":       {reason: "A machine without traffic reports nothing."},
		"First":      {reason: "The first peer is news.", seen: paths{Relayed: 1}, want: &paths{Relayed: 1}},
		"Same":       {reason: "The same is no news.", reported: &paths{Direct: 2}, seen: paths{Direct: 2}, want: &paths{Direct: 2}},
		"Few":        {reason: "A few more of many are no news.", reported: &paths{Direct: 100, Relayed: 4}, seen: paths{Direct: 120, Relayed: 5}, want: &paths{Direct: 100, Relayed: 4}},
		"Many":       {reason: "Many more are.", reported: &paths{Direct: 100}, seen: paths{Direct: 140}, want: &paths{Direct: 140}},
		"FirstRelay": {reason: "So is the first relayed path.", reported: &paths{Direct: 100}, seen: paths{Direct: 100, Relayed: 1}, want: &paths{Direct: 100, Relayed: 1}},
		"LastDirect": {reason: "And the end of the last direct one.", reported: &paths{Direct: 1, Relayed: 9}, seen: paths{Relayed: 9}, want: &paths{Relayed: 9}},
		"Quiet":      {reason: "And the end of all traffic.", reported: &paths{Direct: 3}, want: &paths{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, nextPaths(tc.reported, tc.seen)); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
