// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import "time"

// A Staleness is how old a shared answer of the API may be when a caller gets it.
// Writes of this process show in every answer at once, whatever its age: staleness is
// about the writes of others.
type Staleness time.Duration

const (
	// Cached answers are as old as the client allows (Options.ListMaxAge). They are
	// enough to observe an object.
	Cached Staleness = 0

	// Recent answers are at most two seconds old, so that many objects that act at the
	// same time share one. They decide whether an object is made or deleted, and show
	// what has just joined.
	Recent = Staleness(2 * time.Second)

	// Current answers come from a request that begins after the caller asked. Writes that
	// replace a whole value depend on them.
	Current Staleness = -1
)

// AtMost returns the staleness of a caller that has an interval of its own.
func AtMost(d time.Duration) Staleness { return Staleness(d) }

// maxAge returns how old an answer of the staleness may be.
func (c *Client) maxAge(s Staleness) time.Duration {
	if s == Cached {
		return c.listMaxAge
	}
	return time.Duration(s)
}
