// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"time"
)

const (
	// acceptPatience is how long control may take to accept a machine that advertises a
	// service, before the machine withdraws the service and advertises it again.
	acceptPatience = 30 * time.Second

	// maxAcceptPatience bounds the patience, which doubles each time: a person may
	// approve the machine at any time later.
	maxAcceptPatience = 30 * time.Minute

	// withdrawFor is how long the service is withdrawn. Two seconds were enough and none
	// was not (tailscale/tailscale#18821).
	withdrawFor = 5 * time.Second
)

// readvertising withdraws services that control does not accept, each for a moment, by
// name: an approval may reach a machine only when it advertises the service again
// (tailscale/tailscale#18821). A service that is not accepted has no traffic to lose.
type readvertising map[string]*pending

// pending is one service that is advertised and not accepted.
type pending struct {
	since     time.Time // Advertised and not accepted since then.
	patience  time.Duration
	withdrawn time.Time // Withdrawn since then; zero while advertised.
	count     int
}

// step returns the services among those that are to be advertised which are withdrawn
// for a moment, and when that may change. accepted has the services that control gave
// the machine. While tailscaled is not running nothing is known, and nothing changes.
func (r readvertising) step(now time.Time, advertise []string, accepted map[string]bool, running bool) (withdrawn map[string]bool, next time.Time) {
	withdrawn = map[string]bool{}
	wanted := map[string]bool{}
	for _, name := range advertise {
		wanted[name] = true
		p := r[name]
		if p == nil {
			p = &pending{patience: acceptPatience}
			r[name] = p
		}
		p.step(now, accepted[name], running)
		if !p.withdrawn.IsZero() {
			withdrawn[name] = true
		}
		next = earliest(now, next, p.due())
	}
	for name := range r {
		if !wanted[name] {
			delete(r, name)
		}
	}
	return withdrawn, next
}

func (p *pending) step(now time.Time, accepted, running bool) {
	switch {
	case accepted:
		p.since, p.withdrawn, p.patience = time.Time{}, time.Time{}, acceptPatience
	case !running:
		p.since, p.withdrawn = time.Time{}, time.Time{}
	case p.since.IsZero():
		p.since = now
	case p.withdrawn.IsZero() && !now.Before(p.due()):
		p.withdrawn = now
		p.count++
	case !p.withdrawn.IsZero() && !now.Before(p.due()):
		p.since, p.withdrawn = now, time.Time{}
		p.patience = min(2*p.patience, maxAcceptPatience)
	}
}

// due returns when the service is withdrawn or advertised again; zero if never.
func (p *pending) due() time.Time {
	switch {
	case !p.withdrawn.IsZero():
		return p.withdrawn.Add(withdrawFor)
	case !p.since.IsZero():
		return p.since.Add(p.patience)
	}
	return time.Time{}
}

// counts returns how often each service was withdrawn so.
func (r readvertising) counts() map[string]int {
	out := make(map[string]int, len(r))
	for name, p := range r {
		out[name] = p.count
	}
	return out
}
