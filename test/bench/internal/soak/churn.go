// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"slices"
	"time"
)

// An edit changes the model and the objects in the API server.
type edit struct {
	name   string
	action func(w *Environment, ctx context.Context) error
}

// edits returns the edits that churn selects from at random.
func edits() []edit {
	return []edit{
		{"endpoints", (*Environment).changeEndpoints},
		{"endpoints", (*Environment).changeEndpoints},
		{"route", (*Environment).replaceRoute},
		{"order", (*Environment).reorder},
		{"rules", (*Environment).changeRules},
		{"target", (*Environment).replaceTarget},
		{"health check", (*Environment).changeHealthCheck},
		{"policy", (*Environment).changePolicy},
		{"cluster", (*Environment).changeCluster},
	}
}

// churn edits until ctx ends, and returns the number of edits of each kind.
func (w *Environment) churn(ctx context.Context, pause time.Duration) (map[string]int, error) {
	all, done := edits(), map[string]int{}
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return done, nil
		case <-tick.C:
		}
		e := pick(w.model, all)
		// An edit that has begun is completed, because the model has it already.
		if err := e.action(w, context.WithoutCancel(ctx)); err != nil {
			return done, err
		}
		done[e.name]++
	}
}

func (w *Environment) changeEndpoints(ctx context.Context) error {
	t := pick(w.model, w.model.targets)
	t.addresses = w.model.addresses()
	if t.remote && w.model.rand.IntN(4) == 0 {
		// Only the other cluster answers then.
		t.addresses = nil
	}
	return w.put(ctx, t.slice())
}

// replaceRoute replaces a route by a new one, with a policy if the old one had one.
func (w *Environment) replaceRoute(ctx context.Context) error {
	i := w.model.rand.IntN(len(w.model.routes))
	old, replacement := w.model.routes[i], w.model.newRoute()
	replacement.connections = old.connections
	w.model.routes[i] = replacement
	if old.connections > 0 {
		if err := w.remove(ctx, old.policy()); err != nil {
			return err
		}
		if err := w.put(ctx, replacement.policy()); err != nil {
			return err
		}
	}
	if err := w.remove(ctx, old.object()); err != nil {
		return err
	}
	return w.put(ctx, replacement.object())
}

// reorder reorders the rules of a route.
func (w *Environment) reorder(ctx context.Context) error {
	r := pick(w.model, w.model.routes)
	w.model.rand.Shuffle(len(r.rules), func(i, j int) { r.rules[i], r.rules[j] = r.rules[j], r.rules[i] })
	return w.put(ctx, r.object())
}

// changeRules inserts a rule at a random place of a route, and then removes another.
func (w *Environment) changeRules(ctx context.Context) error {
	r := pick(w.model, w.model.routes)
	r.rules = slices.Insert(r.rules, w.model.rand.IntN(len(r.rules)+1), w.model.other(r))
	if err := w.put(ctx, r.object()); err != nil {
		return err
	}
	i := w.model.rand.IntN(len(r.rules))
	r.rules = slices.Delete(r.rules, i, i+1)
	return w.put(ctx, r.object())
}

// replaceTarget replaces a target by another. Half of the time the old one is deleted while routes
// still refer to it.
func (w *Environment) replaceTarget(ctx context.Context) error {
	m := w.model
	i := m.rand.IntN(len(m.targets))
	old := m.targets[i]
	replacement := m.newTarget(old.remote)
	m.targets[i] = replacement
	if err := w.put(ctx, append(replacement.objects(), m.proxySet())...); err != nil {
		return err
	}
	early := m.rand.IntN(2) == 0
	if early {
		if err := w.remove(ctx, old.objects()...); err != nil {
			return err
		}
	}
	for _, r := range m.naming(old) {
		r.rules[slices.Index(r.rules, old)] = replacement
		if err := w.put(ctx, r.object()); err != nil {
			return err
		}
	}
	if early {
		return nil
	}
	return w.remove(ctx, old.objects()...)
}

func (w *Environment) changeHealthCheck(ctx context.Context) error {
	t := pick(w.model, w.model.targets)
	t.interval = time.Duration(w.model.rand.IntN(10)) * time.Second
	return w.put(ctx, t.objects()...)
}

// changePolicy changes the policy of a route, or moves it to another.
func (w *Environment) changePolicy(ctx context.Context) error {
	hasPolicy := func(r *route) bool { return r.connections > 0 }
	r := pick(w.model, having(w.model.routes, hasPolicy))
	if w.model.rand.IntN(2) == 0 {
		dst := pick(w.model, having(w.model.routes, func(r *route) bool { return !hasPolicy(r) }))
		r.connections = 0
		if err := w.remove(ctx, r.policy()); err != nil {
			return err
		}
		r = dst
	}
	r.connections = w.model.connections()
	return w.put(ctx, r.policy())
}

// changeCluster lets another cluster join one target, and leave another.
func (w *Environment) changeCluster(ctx context.Context) error {
	joined := pick(w.model, having(w.model.targets, func(t *target) bool { return !t.remote }))
	detached := pick(w.model, having(w.model.targets, func(t *target) bool { return t.remote }))
	joined.remote = true
	if err := w.put(ctx, w.model.proxySet(), joined.attachment()); err != nil {
		return err
	}
	if len(detached.addresses) == 0 {
		detached.addresses = w.model.addresses()
		if err := w.put(ctx, detached.slice()); err != nil {
			return err
		}
	}
	if err := w.remove(ctx, detached.attachment()); err != nil {
		return err
	}
	detached.remote = false
	return w.put(ctx, w.model.proxySet())
}
