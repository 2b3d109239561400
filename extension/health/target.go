// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// A target holds the state of a target apart from its endpoints' states.
type target struct {
	// wanted is the target in the snapshot, and endpoints are those of its candidates, in their order. Nil
	// for one that is not probed, of which there are so many.
	wanted    *ir.Target
	endpoints []*endpoint
	unprobed  int

	// away decides whether other clusters replace local backends, by failoverTimeout; back and
	// primary implement the failback delays.
	away, back, primary Shift

	// hadLocal and hadPrimary report that there were local endpoints, and some of the primary backend:
	// endpoints that do not exist yet have not failed.
	hadLocal, hadPrimary bool

	// placed is the last placement. renewed reports that the store may have lost it.
	placed  ir.Placement
	renewed bool

	// recheck is the time of the next update without an event.
	recheck time.Time
}

// newTarget returns a target without results. Other clusters may serve until local backends have
// proved healthy: a replica that starts during an outage must not take traffic back.
func newTarget(wanted *ir.Target) *target {
	return &target{wanted: wanted, away: Shift{Substituted: true}}
}

// checksOf returns the checks of a target's candidates, in their order.
func checksOf(wanted *ir.Target) []Check {
	out := make([]Check, 0, len(wanted.Candidates))
	for _, c := range wanted.Candidates {
		if k, ok := NewCheck(wanted, c); ok {
			out = append(out, k)
		}
	}
	return out
}

// thresholds returns the thresholds of the target's checks.
func (t *target) thresholds() Thresholds {
	hc := t.wanted.Shape.HealthCheck
	if hc == nil {
		return Thresholds{Score: ScoreThreshold}
	}
	return thresholds(Check{Healthy: hc.Healthy, Unhealthy: hc.Unhealthy})
}

// thresholds returns the thresholds of a check. That of the score is a percentage, as the score is.
func thresholds(c Check) Thresholds {
	return Thresholds{Score: ScoreThreshold, Healthy: int(c.Healthy), Unhealthy: int(c.Unhealthy)}
}

// ScoreThreshold is the score below which an endpoint is unhealthy.
const ScoreThreshold = 70

const percent = 100

// A tally counts endpoints. Those that are not probed are in unprobed alone: nothing is known of them.
type tally struct{ all, unhealthy, proven, unprobed int }

func (c *tally) add(e *endpoint, r State, t Thresholds) {
	if e == nil && r.Status == Unknown {
		c.unprobed++
		return
	}
	c.all++
	if r.Status == Unhealthy {
		c.unhealthy++
	}
	if r.Status == Healthy && !r.Failing(t) {
		c.proven++
	}
}

// gone reports whether all endpoints are unhealthy, or none is left. existed reports that there were some.
func (c tally) gone(existed bool) bool { return existed && c.unhealthy == c.all && c.unprobed == 0 }

// failing reports whether there are no endpoints, or less than a percentage of the probed ones are proven
// to be healthy.
func (c tally) failing(enough int) bool {
	if c.all == 0 {
		return c.unprobed == 0
	}
	return c.proven*percent < enough*c.all
}

// state returns the state of the endpoint with an index.
func (t *target) state(i int) State {
	if e := t.endpoints[i]; e != nil {
		return e.State
	}
	r := State{Status: Unknown, Score: best}
	if t.wanted.Candidates[i].Offline {
		r = r.Learn(Facts{Offline: true}, t.thresholds())
	}
	return r
}

// place returns the placement of the target's endpoints by their states, and sets the time of the
// next update.
func (t *target) place(at time.Time) ir.Placement {
	var local, primary tally
	out := ir.Placement{}
	th := t.thresholds()
	for i, e := range t.endpoints {
		c, r := t.wanted.Candidates[i], t.state(i)
		if r.Status == Unhealthy {
			if out.Unhealthy == nil {
				out.Unhealthy = map[ir.Address]bool{}
			}
			out.Unhealthy[c.Address] = true
		}
		if !c.Remote {
			local.add(e, r, th)
		}
		if c.Source == t.wanted.Delays.Primary {
			primary.add(e, r, th)
		}
	}
	t.hadLocal = t.hadLocal || local.all+local.unprobed > 0
	t.hadPrimary = t.hadPrimary || primary.all+primary.unprobed > 0
	localGone, primaryGone := local.gone(t.hadLocal), primary.gone(t.hadPrimary)
	d := t.wanted.Delays
	var rechecks [3]time.Time
	enough := max(int(t.wanted.Shape.HealthThreshold), 1)
	t.away, rechecks[0] = t.away.Next(at, local.failing(enough), d.Failover, 0)
	t.back, rechecks[1] = t.back.Next(at, localGone, 0, d.Failback)
	if d.Primary != "" {
		t.primary, rechecks[2] = t.primary.Next(at, primaryGone, 0, d.PrimaryFailback)
	}
	t.recheck = time.Time{}
	for _, a := range rechecks {
		if !a.IsZero() && (t.recheck.IsZero() || a.Before(t.recheck)) {
			t.recheck = a
		}
	}
	out.Local = t.back.Substituted && !localGone
	out.LocalOnly = d.Failover > 0 && !t.away.Substituted && !out.Local
	if t.primary.Substituted && !primaryGone {
		out.Waiting = map[string]bool{d.Primary: true}
	}
	return out
}
