// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import "time"

const (
	// withdrawFor is how long a service is withdrawn for a moment. Two seconds are enough, and no pause is
	// too short (tailscale/tailscale#18821).
	withdrawFor = 5 * time.Second

	// reloadPatience is how long tailscaled can take to read the config without a withdrawn service. On a
	// machine without processor time to spare it took longer than withdrawFor, so that control never saw the
	// withdrawal.
	reloadPatience = 30 * time.Second
)

// An absence withdraws a service for a moment, so that control sees it withdrawn and advertised
// again. The moment begins when tailscaled has read the config without the service. The zero value
// withdraws nothing.
type absence struct {
	start  time.Time // Since when the config lacks the service.
	reload time.Time // When tailscaled last read its config since then; zero if it has not.
}

// active reports whether the service is withdrawn.
func (a *absence) active() bool { return !a.start.IsZero() }

// begin withdraws the service.
func (a *absence) begin(at time.Time) { *a = absence{start: at} }

// end advertises the service again.
func (a *absence) end() { *a = absence{} }

// reloaded records that tailscaled has read its config, on a request of a time. The first reading may be that
// of a config with the service, so each one begins the moment again. One that was requested before the service
// was withdrawn does not count.
func (a *absence) reloaded(request, at time.Time) {
	if a.active() && !request.Before(a.start) {
		a.reload = at
	}
}

// due returns when to advertise the service again, or zero if it is not withdrawn.
func (a *absence) due() time.Time {
	switch {
	case !a.active():
		return time.Time{}
	case a.reload.IsZero():
		return a.start.Add(reloadPatience)
	}
	return earlier(a.reload.Add(withdrawFor), a.start.Add(reloadPatience))
}

// over reports whether a withdrawn service is to be advertised again.
func (a *absence) over(at time.Time) bool { return a.active() && !at.Before(a.due()) }
