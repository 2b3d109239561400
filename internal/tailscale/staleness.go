// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import "time"

// A Staleness is the maximum age of a shared response that a caller gets. Every response includes
// the writes of this process, whatever its age: staleness concerns the writes of other clients.
type Staleness time.Duration

const (
	// Cached responses are as old as the client permits (Options.ListMaxAge). They are recent
	// enough to observe an object.
	Cached Staleness = 0

	// Recent responses are at most two seconds old, so that objects that reconcile at the same time
	// share one. Use them to decide whether to create or delete an object, and to find devices that
	// have just joined.
	Recent = Staleness(2 * time.Second)

	// Current responses come from a request that begins after the call. Use them before writes that
	// replace a whole value.
	Current Staleness = -1
)

// AtMost returns the staleness of a caller with a separate interval.
func AtMost(d time.Duration) Staleness { return Staleness(d) }

// maxAge returns the maximum age of a response with the staleness.
func (c *core) maxAge(s Staleness) time.Duration {
	if s == Cached {
		return c.listMaxAge
	}
	return time.Duration(s)
}
