// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"math/bits"
)

const (
	// window is the number of results in the ratio.
	window = 20

	// penalty for each failure in a row.
	penalty = 10

	// Each success in a row from number steady on adds bonus, up to maxBonus.
	steady   = 6
	bonus    = 2
	maxBonus = 20

	// best is the highest score, and doubtful the highest score of an endpoint whose device the
	// tailnet reports as offline.
	best     = 100
	doubtful = 50
)

// A History holds the recent results of an endpoint's probes. The zero value has none.
type History struct {
	// results are the last ones, the newest lowest, 1 for a success. A run of failures counts once:
	// the penalty reflects its length, and a recovered endpoint does not pay for the length of its
	// outage.
	results uint32
	count   int

	// successes and failures in a row. One of them is zero.
	successes, failures int
}

// Add returns the history with another result.
func (h History) Add(ok bool) History {
	if !ok {
		h.successes = 0
		if h.failures++; h.failures > 1 {
			return h
		}
	} else {
		h.successes, h.failures = h.successes+1, 0
	}
	h.results = h.results << 1 & (1<<window - 1)
	if ok {
		h.results |= 1
	}
	h.count = min(h.count+1, window)
	return h
}

// Facts about an endpoint from other sources than probes.
type Facts struct {
	// Disabled endpoints are not used.
	Disabled bool

	// Offline reports that the tailnet reports the device as offline.
	Offline bool
}

// Score returns the score of an endpoint, from 0 to 100: the percentage of successes, minus 10 for
// each failure in a row, plus 2 for each success in a row from the sixth on, up to 20. Missing
// results count as successes, so an endpoint without any result has 100. The score is at most 50
// for a device that is offline, and 0 for a disabled endpoint.
func Score(h History, f Facts) int {
	if f.Disabled {
		return 0
	}
	wins := bits.OnesCount32(h.results) + window - h.count
	s := wins*best/window - penalty*min(h.failures, best)
	if h.successes >= steady {
		s += min(bonus*(h.successes-steady+1), maxBonus)
	}
	if f.Offline {
		s = min(s, doubtful)
	}
	return min(max(s, 0), best)
}
