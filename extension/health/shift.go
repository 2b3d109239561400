// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"time"
)

// A Shift is which way traffic goes that moves only after a while: from those that it is
// meant for to those that stand in, and back. The zero value has it where it is meant to
// be.
type Shift struct {
	// Over reports that others stand in.
	Over bool

	// since the condition holds that would have it change. Zero if it does not.
	since time.Time
}

// Next shift, and when to look again if nothing happens before; zero if not at all.
// Failing tells of those that traffic is meant for. After failing for the time away
// others stand in; after being well for the time back they do no more.
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
