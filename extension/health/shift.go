// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"time"
)

// A Shift decides with delays whether traffic goes to its primary endpoints or to their
// substitutes. The zero value selects the primary endpoints.
type Shift struct {
	// Substituted reports that the substitutes get the traffic.
	Substituted bool

	// start is the time from which the condition for a change holds. Zero if it does not.
	start time.Time
}

// Next returns the next shift, and the time at which to call Next again without an event; zero if
// that is not necessary. failing reports that the primary endpoints fail. After they fail for the
// time away, traffic goes to the substitutes; after they are healthy for the time back, it returns.
func (s Shift) Next(at time.Time, failing bool, away, back time.Duration) (next Shift, recheck time.Time) {
	if failing == s.Substituted {
		s.start = time.Time{}
		return s, time.Time{}
	}
	wait := away
	if s.Substituted {
		wait = back
	}
	if s.start.IsZero() {
		s.start = at
	}
	if due := s.start.Add(wait); at.Before(due) {
		return s, due
	}
	return Shift{Substituted: !s.Substituted}, time.Time{}
}
