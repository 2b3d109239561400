// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// A target holds the state of a target apart from its endpoints' records.
type target struct {
	// of is the target in the snapshot, and checks are the checks of its candidates, in their
	// order.
	of     *ir.Target
	checks []Check

	// away decides whether other clusters replace local backends, by failoverTimeout; back and
	// primary implement the failback delays.
	away, back, primary Shift

	// placed is the last placement. renewed reports that the store may have lost it.
	placed  ir.Placement
	renewed bool

	// again is the time of the next update without an event.
	again time.Time
}

// newTarget returns a target without results. Other clusters may serve until local backends have
// proved healthy: a replica that starts during an outage must not take traffic back.
func newTarget(of *ir.Target) *target {
	return &target{of: of, away: Shift{Over: true}}
}

// take reads the target of the newest snapshot.
func (t *target) take(of *ir.Target) {
	t.of = of
	t.checks = t.checks[:0]
	for _, c := range of.Candidates {
		if k, ok := NewCheck(of, c); ok {
			t.checks = append(t.checks, k)
		}
	}
}

// thresholds returns the thresholds of a check. That of the score is a percentage, as the score is.
func thresholds(c Check) Thresholds {
	return Thresholds{Score: ScoreThreshold, Healthy: int(c.Healthy), Unhealthy: int(c.Unhealthy)}
}

// ScoreThreshold is the score below which an endpoint is unhealthy.
const ScoreThreshold = 70

const percent = 100

// A tally counts endpoints.
type tally struct{ all, unhealthy, proven int }

func (c *tally) add(r Record, t Thresholds) {
	c.all++
	if r.Status == Unhealthy {
		c.unhealthy++
	}
	if r.Status == Healthy && !r.Failing(t) {
		c.proven++
	}
}

// gone reports whether there are endpoints and all of them are unhealthy.
func (c tally) gone() bool { return c.all > 0 && c.unhealthy == c.all }

// place returns the placement of the target's endpoints by their records, and sets the time of the
// next update.
func (t *target) place(now time.Time, records func(Check) Record) ir.Placement {
	var local, primary tally
	out := ir.Placement{}
	for i, c := range t.checks {
		of, r, th := t.of.Candidates[i], records(c), thresholds(c)
		if r.Status == Unhealthy {
			if out.Unhealthy == nil {
				out.Unhealthy = map[ir.Address]bool{}
			}
			out.Unhealthy[of.Address] = true
		}
		if !of.Remote {
			local.add(r, th)
		}
		if of.Source == t.of.Delays.Primary {
			primary.add(r, th)
		}
	}
	d := t.of.Delays
	var again [3]time.Time
	enough := max(int(t.of.Shape.HealthThreshold), 1)
	t.away, again[0] = t.away.Next(now, local.all == 0 || local.proven*percent < enough*local.all, d.Failover, 0)
	t.back, again[1] = t.back.Next(now, local.gone(), 0, d.Failback)
	if d.Primary != "" {
		t.primary, again[2] = t.primary.Next(now, primary.gone(), 0, d.PrimaryFailback)
	}
	t.again = time.Time{}
	for _, a := range again {
		if !a.IsZero() && (t.again.IsZero() || a.Before(t.again)) {
			t.again = a
		}
	}
	out.Local = t.back.Over && !local.gone()
	out.LocalOnly = d.Failover > 0 && !t.away.Over && !out.Local
	if t.primary.Over && !primary.gone() {
		out.Waiting = map[string]bool{d.Primary: true}
	}
	return out
}
