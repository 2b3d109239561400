// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestAbsence checks that a service stays withdrawn until tailscaled has read the config without it, and for
// a moment after that.
func TestAbsence(t *testing.T) {
	at := time.Unix(1000, 0).UTC()
	cases := map[string]struct {
		reason   string
		reloaded []time.Duration
		took     time.Duration // How long each reading took.
		want     time.Duration
	}{
		"AtOnce":  {reason: "A moment is five seconds.", reloaded: []time.Duration{0}, want: withdrawFor},
		"Slow":    {reason: "It begins when tailscaled has read the config.", reloaded: []time.Duration{20 * time.Second}, want: 25 * time.Second},
		"Twice":   {reason: "The first reading may be that of an earlier config.", reloaded: []time.Duration{0, time.Second}, want: 6 * time.Second},
		"Changes": {reason: "Other changes of the config do not prolong it forever.", reloaded: []time.Duration{0, 4 * time.Second, 29 * time.Second}, want: reloadPatience},
		"Earlier": {reason: "A reading that was requested before does not count.", reloaded: []time.Duration{6 * time.Second}, took: 8 * time.Second, want: reloadPatience},
		"Never":   {reason: "A tailscaled that does not answer does not keep the service withdrawn.", want: reloadPatience},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := &absence{}
			a.begin(at)
			for _, d := range tc.reloaded {
				a.reloaded(at.Add(d-tc.took), at.Add(d))
			}
			if diff := cmp.Diff(at.Add(tc.want), a.due()); diff != "" {
				t.Errorf("\n%s\ndue(): -want, +got:\n%s", tc.reason, diff)
			}
			if a.over(at.Add(tc.want - time.Second)) {
				t.Errorf("\n%s\nThe service is advertised again too early.", tc.reason)
			}
			if !a.over(at.Add(tc.want)) {
				t.Errorf("\n%s\nThe service is not advertised again after %s.", tc.reason, tc.want)
			}
			a.end()
			if a.active() || !a.due().IsZero() {
				t.Errorf("\n%s\nAn absence that has ended withdraws the service until %s.", tc.reason, a.due())
			}
		})
	}
}
