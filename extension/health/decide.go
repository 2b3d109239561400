// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/limits"
)

// sync reads the newest snapshot. A target that did not change costs one comparison.
func (p *Prober) sync(at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.store.Snapshot()
	var removed []ir.TargetKey
	for k, t := range p.targets {
		if s.Target(k) == nil {
			p.leave(t, slices.Values(t.endpoints))
			delete(p.targets, k)
			delete(p.waiting, k)
			delete(p.short, k)
			removed = append(removed, k)
		}
	}
	if len(removed) > 0 {
		p.opts.Transition(removed)
	}
	var changed []ir.TargetKey
	for wanted := range s.Targets() {
		t := p.targets[wanted.Key]
		switch {
		case t == nil && len(wanted.Candidates) == 0:
			continue
		case t == nil:
			p.targets[wanted.Key] = newTarget(wanted)
		case t.wanted == wanted:
			continue
		}
		changed = append(changed, wanted.Key)
	}
	// Of too many endpoints that are new at once, all replicas probe the same.
	slices.SortFunc(changed, compareKeys)
	for _, k := range changed {
		p.join(at, s.Target(k), p.targets[k])
	}
	p.place(at, append(changed, p.admit(at)...))
}

func compareKeys(a, b ir.TargetKey) int { return cmp.Compare(a.ClusterName(), b.ClusterName()) }

// admit lets targets with endpoints that are not probed have what is left for their namespace, and
// returns those that got some.
func (p *Prober) admit(at time.Time) []ir.TargetKey {
	var out []ir.TargetKey
	for _, k := range slices.SortedFunc(maps.Keys(p.short), compareKeys) {
		if t := p.short[k]; p.probed[k.Namespace] < limits.NamespaceProbes {
			p.join(at, t.wanted, t)
			out = append(out, k)
		}
	}
	return out
}

// leave removes a target from endpoints. Endpoints without a target are no longer probed.
func (p *Prober) leave(t *target, endpoints iter.Seq[*endpoint]) {
	namespace := t.wanted.Key.Namespace
	for e := range endpoints {
		if e == nil || e.removed {
			continue
		}
		delete(e.targets, t)
		if len(e.targets) == 0 {
			e.removed = true
			p.due.remove(e)
			delete(p.checks, e.check)
			if p.probed[namespace]--; p.probed[namespace] == 0 {
				delete(p.probed, namespace)
			}
		}
	}
}

// join adds a target to its endpoints, and removes it from its former ones. Endpoints that stay
// keep their states, and those beyond the limit of the namespace have none.
func (p *Prober) join(at time.Time, wanted *ir.Target, t *target) {
	t.wanted = wanted
	// The store has forgotten a target that was missing for a moment.
	t.renewed = true
	checks := checksOf(wanted)
	former := map[*endpoint]bool{}
	for _, e := range t.endpoints {
		former[e] = true
	}
	for _, c := range checks {
		delete(former, p.checks[c])
	}
	p.leave(t, maps.Keys(former))
	t.endpoints, t.unprobed = make([]*endpoint, len(checks)), 0
	for i, c := range checks {
		e := p.checks[c]
		if e == nil && p.probed[c.Namespace] >= limits.NamespaceProbes {
			t.unprobed++
			continue
		}
		if e == nil {
			e = &endpoint{check: c, targets: map[*target]struct{}{}, index: -1}
			e.Status, e.Score = Unknown, best
			e.next = at.Add(time.Duration(p.opts.Random() * float64(min(spread, c.Interval))))
			p.checks[c] = e
			p.probed[c.Namespace]++
			p.due.add(e)
		}
		t.endpoints[i] = e
		e.targets[t] = struct{}{}
		if f := (Facts{Offline: wanted.Candidates[i].Offline}); f != e.facts {
			e.facts = f
			p.settle(e, e.Learn(f, thresholds(c)))
		}
	}
	if t.unprobed == 0 {
		delete(p.short, wanted.Key)
		return
	}
	if p.short[wanted.Key] == nil {
		p.opts.Log.Info("A namespace has too many endpoints to probe all", "namespace", wanted.Key.Namespace, "limit", limits.NamespaceProbes, "xds-cluster", wanted.Key.ClusterName(), "unprobed", t.unprobed)
	}
	p.short[wanted.Key] = t
}

// settle stores a state, and reports whether the status changed.
func (p *Prober) settle(e *endpoint, current State) (transition bool) {
	previous := e.State
	e.State = current
	if previous.Status == current.Status {
		return false
	}
	p.metrics.transitions.WithLabelValues(string(current.Status)).Inc()
	if previous.Status != Unhealthy && current.Status != Unhealthy {
		p.opts.Log.Debug("An endpoint answers", "endpoint", e.check.hostPort())
		return true
	}
	kv := []any{"endpoint", e.check.hostPort(), "path", e.check.Path, "status", current.Status, "score", current.Score, "targets", e.names()}
	if current.Reason != "" {
		kv = append(kv, "reason", current.Reason)
	}
	p.opts.Log.Info("The health of an endpoint changed", kv...)
	return true
}

// maxNames is the number of names in a log line.
const maxNames = 3

// names returns the clusters that have the endpoint, sorted and cut at three.
func (e *endpoint) names() []string {
	out := make([]string, 0, len(e.targets))
	for t := range e.targets {
		out = append(out, t.wanted.Key.ClusterName())
	}
	slices.Sort(out)
	return out[:min(len(out), maxNames)]
}

// finish handles the result of a probe: it schedules the next one, and updates the endpoint's
// targets.
func (p *Prober) finish(at time.Time, o outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := o.endpoint
	p.due.finish(e)
	p.metrics.probed(o.result)
	if e.removed {
		return
	}
	if o.result.OK || o.result.Answered {
		p.recordAnswer(at, e.check.Host)
	}
	th := thresholds(e.check)
	e.last = at
	switch {
	case o.result.OK:
		e.failing = time.Time{}
	case e.failing.IsZero():
		e.failing = at
	}
	blind := !p.lastOther(e.check.Host).After(e.failing)
	previous := e.Failing(th)
	transition := p.settle(e, e.Next(o.result, e.facts, th, blind))
	e.next = at.Add(p.pause(e, th))
	p.due.add(e)
	if transition || previous != e.Failing(th) {
		keys := make([]ir.TargetKey, 0, len(e.targets))
		for t := range e.targets {
			keys = append(keys, t.wanted.Key)
		}
		p.place(at, keys)
	}
}

// recordAnswer records that a host answered.
func (p *Prober) recordAnswer(at time.Time, host string) {
	if p.lastHost != host {
		p.other, p.lastHost = p.answered, host
	}
	p.answered = at
}

// lastOther returns the time of the last answer of any other host.
func (p *Prober) lastOther(host string) time.Time {
	if p.lastHost == host {
		return p.other
	}
	return p.answered
}

// pause returns the time until the next probe, which is short while the status is about to change.
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

// place computes the placement of targets' endpoints, and stores the changed ones.
func (p *Prober) place(at time.Time, keys []ir.TargetKey) {
	changed := map[ir.TargetKey]ir.Placement{}
	for _, k := range keys {
		t := p.targets[k]
		previous := t.placed
		t.placed = t.place(at)
		if t.recheck.IsZero() {
			delete(p.waiting, k)
		} else {
			p.waiting[k] = t
		}
		if !t.placed.Equal(previous) {
			p.log(k, previous, t.placed)
		}
		if !t.placed.Equal(previous) || t.renewed && !t.placed.Equal(ir.Placement{}) {
			changed[k] = t.placed
		}
		t.renewed = false
	}
	if len(changed) > 0 {
		p.store.SetHealth(changed)
	}
	if len(keys) > 0 {
		slices.SortFunc(keys, compareKeys)
		p.opts.Transition(keys)
	}
}

// log logs a changed placement.
func (p *Prober) log(k ir.TargetKey, previous, current ir.Placement) {
	kv := []any{"xds-cluster", k.ClusterName(), "unhealthy", len(current.Unhealthy)}
	switch {
	case previous.LocalOnly && !current.LocalOnly && !current.Local:
		p.opts.Log.Info("Local backends have failed for the failoverTimeout: traffic goes to other clusters", kv...)
	case !previous.Local && current.Local, len(previous.Waiting) < len(current.Waiting):
		p.opts.Log.Info("Backends are healthy again, and wait for the failback delay", kv...)
	case previous.Local && !current.Local, len(previous.Waiting) > len(current.Waiting):
		p.opts.Log.Info("Backends no longer wait for the failback delay", kv...)
	default:
		p.opts.Log.Debug("The placement of endpoints changed", kv...)
	}
}
