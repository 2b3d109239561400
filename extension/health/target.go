// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// A target is what is held of a target beside its endpoints.
type target struct {
	// of which snapshot it is, and the checks of its candidates, in their order.
	of     *ir.Target
	checks []Check

	// away is whether other clusters stand in for local backends, by failoverTimeout;
	// back and primary are for the delays of coming back.
	away, back, primary Shift

	// placed is where its endpoints are to stand. Anew reports that the store may have
	// forgotten it.
	placed ir.Placement
	anew   bool

	// again is when to look at it though nothing happens.
	again time.Time
}

// newTarget is one of which nothing is known. Other clusters may stand in until local
// backends have shown that they are well: whoever starts while they are not must not
// take traffic back.
func newTarget(of *ir.Target) *target {
	return &target{of: of, away: Shift{Over: true}}
}

// take over what the newest snapshot has of the target.
func (t *target) take(of *ir.Target) {
	t.of = of
	t.checks = t.checks[:0]
	for _, c := range of.Candidates {
		if k, ok := NewCheck(of, c); ok {
			t.checks = append(t.checks, k)
		}
	}
}

// thresholds of a target. The score's is a percentage like that of endpoints.
func thresholds(c Check) Thresholds {
	return Thresholds{Score: ScoreThreshold, Healthy: int(c.Healthy), Unhealthy: int(c.Unhealthy)}
}

// ScoreThreshold below which an endpoint is unhealthy.
const ScoreThreshold = 70

const percent = 100

// A tally of endpoints.
type tally struct{ all, sick, proven int }

func (c *tally) add(r Record, t Thresholds) {
	c.all++
	if r.Status == Unhealthy {
		c.sick++
	}
	if r.Status == Healthy && !r.Failing(t) {
		c.proven++
	}
}

// gone reports whether there are endpoints and all are sick.
func (c tally) gone() bool { return c.all > 0 && c.sick == c.all }

// place the target's endpoints by what is known of them, and note when to look again.
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
