// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"tailscale.com/ipn/ipnstate"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// countPaths counts the peers with traffic in the last minutes by their path (tailscale.com
// ipn/ipnstate, PeerStatus: CurAddr is empty unless the path is direct).
func countPaths(st *ipnstate.Status) v1alpha1.MachinePaths {
	var out v1alpha1.MachinePaths
	for _, p := range st.Peer {
		switch {
		case !p.Active:
		case p.CurAddr != "":
			out.Direct++
		case p.Relay != "" || p.PeerRelay != "":
			out.Relayed++
		}
	}
	return out
}

// nextPaths returns the paths to report: the reported ones unless the difference says something. Each
// report is a write. A machine that never had traffic reports nothing.
func nextPaths(reported *v1alpha1.MachinePaths, seen v1alpha1.MachinePaths) *v1alpha1.MachinePaths {
	var previous v1alpha1.MachinePaths
	if reported != nil {
		previous = *reported
	}
	if near(previous.Direct, seen.Direct) && near(previous.Relayed, seen.Relayed) {
		return reported
	}
	return &seen
}

// near reports whether two counts are equal, or positive and differ by a quarter at most.
func near(a, b int32) bool {
	return a == b || a > 0 && b > 0 && 4*max(a-b, b-a) <= max(a, b)
}
