// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"time"
)

// A Shift decides with delays whether traffic goes to its primary endpoints or to their
// substitutes. The zero value selects the primary endpoints.
type Shift struct {
	// Over reports that the substitutes get the traffic.
	Over bool

	// since is the time from which the condition for a change holds. Zero if it does not.
	since time.Time
}

// Next returns the next shift, and the time at which to call Next again without an event; zero if
// that is not necessary. failing reports that the primary endpoints fail. After they fail for the
// time away, traffic goes to the substitutes; after they are healthy for the time back, it returns.
func (s Shift) Next(now time.Time, failing bool, away, back time.Duration) (next Shift, again time.Time) {
	if failing == s.Over {
		s.since = time.Time{}
		return s, time.Time{}
	}
	wait := away
	if s.Over {
		wait = back
	}
	if s.since.IsZero() {
		s.since = now
	}
	if due := s.since.Add(wait); now.Before(due) {
		return s, due
	}
	return Shift{Over: !s.Over}, time.Time{}
}
