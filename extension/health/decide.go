// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"container/heap"
	"maps"
	"slices"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// sync with the newest snapshot. A target that is the same as before costs a comparison.
func (p *Prober) sync(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.store.Snapshot()
	var gone []ir.TargetKey
	for k, t := range p.targets {
		if s.Target(k) == nil {
			p.leave(k, t)
			delete(p.targets, k)
			delete(p.waiting, k)
			gone = append(gone, k)
		}
	}
	if len(gone) > 0 {
		p.opts.Transition(gone)
	}
	var changed []ir.TargetKey
	for of := range s.Targets() {
		t := p.targets[of.Key]
		switch {
		case t == nil && len(of.Candidates) == 0:
			continue
		case t == nil:
			t = newTarget(of)
			p.targets[of.Key] = t
		case t.of == of:
			continue
		}
		p.join(now, of, t)
		changed = append(changed, of.Key)
	}
	p.place(now, changed)
}

// leave the endpoints of a target. Those that no target has any more are not probed on.
func (p *Prober) leave(k ir.TargetKey, t *target) {
	for _, c := range t.checks {
		e := p.checks[c]
		if e == nil {
			continue
		}
		delete(e.of, k)
		if len(e.of) == 0 {
			e.gone = true
			p.due.remove(e)
			delete(p.checks, c)
		}
	}
}

// join a target's endpoints, and leave those that it has no more. What is known of those
// that stay is kept.
func (p *Prober) join(now time.Time, of *ir.Target, t *target) {
	old := *t
	old.checks = slices.Clone(t.checks)
	t.take(of)
	// One that was gone for a moment is told of again: the store has forgotten it.
	t.anew = true
	gone := map[Check]bool{}
	for _, c := range old.checks {
		gone[c] = true
	}
	for i, c := range t.checks {
		delete(gone, c)
		e := p.checks[c]
		if e == nil {
			e = &endpoint{check: c, of: map[ir.TargetKey]struct{}{}, at: -1}
			e.Status, e.Score = Unknown, best
			e.next = now.Add(time.Duration(p.opts.Random() * float64(min(spread, c.Interval))))
			p.checks[c] = e
			heap.Push(&p.due, e)
		}
		e.of[of.Key] = struct{}{}
		if f := (Facts{Offline: of.Candidates[i].Offline}); f != e.facts {
			e.facts = f
			p.settle(e, e.Learn(f, thresholds(c)))
		}
	}
	old.checks = slices.Collect(maps.Keys(gone))
	p.leave(of.Key, &old)
}

// settle a new record, and tell of a transition.
func (p *Prober) settle(e *endpoint, now Record) (transition bool) {
	was := e.Record
	e.Record = now
	if was.Status == now.Status {
		return false
	}
	p.metrics.transitions.WithLabelValues(string(now.Status)).Inc()
	if was.Status != Unhealthy && now.Status != Unhealthy {
		p.opts.Log.Debug("An endpoint answers", "endpoint", e.check.hostPort())
		return true
	}
	kv := []any{"endpoint", e.check.hostPort(), "path", e.check.Path, "status", now.Status, "score", now.Score, "targets", e.names()}
	if now.Reason != "" {
		kv = append(kv, "reason", now.Reason)
	}
	p.opts.Log.Info("An endpoint has another health", kv...)
	return true
}

// most names that a log line has.
const most = 3

// names of the clusters that have the endpoint, in order, cut at three.
func (e *endpoint) names() []string {
	out := make([]string, 0, len(e.of))
	for k := range e.of {
		out = append(out, k.ClusterName())
	}
	slices.Sort(out)
	return out[:min(len(out), most)]
}

// finish a probe: have its endpoint probed again, and its targets look at it.
func (p *Prober) finish(now time.Time, o outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := o.of
	p.metrics.probed(o.result)
	if e.gone {
		return
	}
	if o.result.OK || o.result.Answered {
		p.hear(now, e.check.Host)
	}
	th := thresholds(e.check)
	e.last = now
	switch {
	case o.result.OK:
		e.failing = time.Time{}
	case e.failing.IsZero():
		e.failing = now
	}
	blind := !p.heard(e.check.Host).After(e.failing)
	was := e.Failing(th)
	transition := p.settle(e, e.Next(o.result, e.facts, th, blind))
	e.next = now.Add(p.pause(e, th))
	heap.Push(&p.due, e)
	if transition || was != e.Failing(th) {
		p.place(now, slices.Collect(maps.Keys(e.of)))
	}
}

// hear that a host answered.
func (p *Prober) hear(now time.Time, host string) {
	if p.by != host {
		p.other, p.by = p.answered, host
	}
	p.answered = now
}

// heard is when a host other than this one answered last.
func (p *Prober) heard(host string) time.Time {
	if p.by == host {
		return p.other
	}
	return p.answered
}

// pause before the next probe. While a verdict is open it is short.
func (p *Prober) pause(e *endpoint, t Thresholds) time.Duration {
	h := e.History
	open := h.failures > 0 && e.Status != Unhealthy && h.failures < max(t.Unhealthy, 1) ||
		h.successes > 0 && e.Status != Healthy && h.successes < max(t.Healthy, 1)
	d := e.check.Interval
	if open {
		d = min(d, unsettled)
	}
	return time.Duration(float64(d) * (1 - jitter + 2*jitter*p.opts.Random()))
}

// place the endpoints of targets, and tell the store of those whose endpoints are to
// stand elsewhere.
func (p *Prober) place(now time.Time, of []ir.TargetKey) {
	told := map[ir.TargetKey]ir.Placement{}
	for _, k := range of {
		t := p.targets[k]
		was := t.placed
		t.placed = t.place(now, func(c Check) Record { return p.checks[c].Record })
		if t.again.IsZero() {
			delete(p.waiting, k)
		} else {
			p.waiting[k] = t
		}
		if !t.placed.Equal(was) {
			p.log(k, was, t.placed)
		}
		if !t.placed.Equal(was) || t.anew && !t.placed.Equal(ir.Placement{}) {
			told[k] = t.placed
		}
		t.anew = false
	}
	if len(told) > 0 {
		p.store.SetHealth(told)
	}
	if len(of) > 0 {
		slices.SortFunc(of, func(a, b ir.TargetKey) int { return cmp.Compare(a.ClusterName(), b.ClusterName()) })
		p.opts.Transition(of)
	}
}

// log what was decided for a target.
func (p *Prober) log(k ir.TargetKey, was, now ir.Placement) {
	kv := []any{"xds-cluster", k.ClusterName(), "sick", len(now.Unhealthy)}
	switch {
	case was.LocalOnly && !now.LocalOnly && !now.Local:
		p.opts.Log.Info("Local backends have failed for the failoverTimeout: other clusters stand in", kv...)
	case !was.Local && now.Local, len(was.Waiting) < len(now.Waiting):
		p.opts.Log.Info("Backends are well again, and wait for the failback delay", kv...)
	case was.Local && !now.Local, len(was.Waiting) > len(now.Waiting):
		p.opts.Log.Info("Backends no longer wait for the failback delay", kv...)
	default:
		p.opts.Log.Debug("Endpoints stand elsewhere", kv...)
	}
}
