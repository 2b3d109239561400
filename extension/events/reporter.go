// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/extension/hooks"
	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

const (
	// minDuration is how long a problem must last before it is reported: objects that a user
	// applies together arrive one after the other.
	minDuration = 5 * time.Second

	// maxEvents is the number of events written at one time. Others follow after pause.
	maxEvents = 25
	pause     = time.Second

	// settle is how long a change waits for further changes: a check looks at all routes.
	settle = 250 * time.Millisecond
)

// A Recorder records a problem of a route, or that the route has no problems any more.
type Recorder interface {
	RecordProblem(ctx context.Context, route ir.RouteKey, message string) error
	RecordServed(ctx context.Context, route ir.RouteKey) error
}

// A Reporter reports problems of routes to a Recorder. Create one with New.
type Reporter struct {
	store    *index.Store
	recorder Recorder
	log      logging.Logger
	wake     chan struct{}

	// mu guards unchanged, which holds the rules that the last translation of each Gateway left
	// unchanged.
	mu        sync.Mutex
	unchanged map[string][]hooks.SkippedRule

	// starts holds the time at which each problem began, and reported the problems that were
	// reported. The next batch of problems may be reported at next. Only Run uses them.
	starts   map[problem]time.Time
	reported map[problem]bool
	next     time.Time
}

// New returns a Reporter, which reports nothing until Run.
func New(s *index.Store, recorder Recorder, log logging.Logger) *Reporter {
	return &Reporter{
		store: s, recorder: recorder, log: log, wake: make(chan struct{}, 1),
		unchanged: map[string][]hooks.SkippedRule{}, starts: map[problem]time.Time{}, reported: map[problem]bool{},
	}
}

// Translated records the rules that a translation of a Gateway left unchanged. It does not
// block.
func (r *Reporter) Translated(gateway string, unchanged []hooks.SkippedRule) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(unchanged) == 0 && len(r.unchanged[gateway]) == 0 {
		return
	}
	if r.unchanged[gateway] = unchanged; len(unchanged) == 0 {
		delete(r.unchanged, gateway)
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run reports problems until ctx ends. The store must be complete.
func (r *Reporter) Run(ctx context.Context) error {
	changes := r.store.Subscribe()
	defer changes.Close()
	revised, end := r.store.Revised()
	defer end()
	t := time.NewTimer(0)
	defer t.Stop()
	var stale <-chan time.Time
	for {
		changed := true
		select {
		case <-ctx.Done():
			return nil
		case <-r.wake:
		case <-revised:
		case <-changes.Changed():
			changes.Take()
		case <-t.C:
			changed = false
		case <-stale:
			changed, stale = false, nil
		}
		if changed {
			if stale == nil {
				stale = time.After(settle)
			}
			continue
		}
		if wait, ok := r.check(ctx, time.Now()); ok {
			t.Reset(wait)
		} else {
			t.Stop()
		}
	}
}

// check finds problems that began or ended, reports those that are due, and returns the time
// until the next check is necessary without a change. It returns false if there is none.
func (r *Reporter) check(ctx context.Context, at time.Time) (time.Duration, bool) {
	r.mu.Lock()
	unchanged := maps.Clone(r.unchanged)
	r.mu.Unlock()
	current := problems(r.store.Snapshot(), unchanged)

	for p := range current {
		if _, ok := r.starts[p]; !ok {
			r.starts[p] = at
		}
	}
	recovered := map[ir.RouteKey]bool{}
	for p := range r.starts {
		if _, ok := current[p]; ok {
			continue
		}
		if r.reported[p] {
			recovered[p.route] = true
		}
		delete(r.starts, p)
		delete(r.reported, p)
	}
	for p := range current {
		delete(recovered, p.route)
	}
	for _, route := range slices.SortedFunc(maps.Keys(recovered), compareRoutes) {
		if err := r.recorder.RecordServed(ctx, route); err != nil {
			r.log.Debug("Cannot record that a route is served", "route", route, "error", err)
		}
	}
	return r.report(ctx, at)
}

// report records the problems that are due, and returns the same as check.
func (r *Reporter) report(ctx context.Context, at time.Time) (time.Duration, bool) {
	var due []problem
	wait, pending := time.Duration(0), false
	for p, start := range r.starts {
		remaining := minDuration - at.Sub(start)
		switch {
		case r.reported[p]:
		case remaining <= 0:
			due = append(due, p)
		case !pending || remaining < wait:
			wait, pending = remaining, true
		}
	}
	if len(due) == 0 {
		return wait, pending
	}
	if rest := r.next.Sub(at); rest > 0 {
		return rest, true
	}
	r.next = at.Add(pause)
	slices.SortFunc(due, func(a, b problem) int {
		return cmp.Or(compareRoutes(a.route, b.route), cmp.Compare(a.message, b.message))
	})
	for _, p := range due[:min(len(due), maxEvents)] {
		// A problem whose recording fails is not retried while it lasts: the page and the
		// metrics show it all the time.
		r.reported[p] = true
		if err := r.recorder.RecordProblem(ctx, p.route, p.message); err != nil {
			r.log.Info("Cannot record why a route is not served", "route", p.route, "reason", p.message, "error", err)
			continue
		}
		r.log.Info("Route is not served", "route", p.route, "reason", p.message)
	}
	if len(due) > maxEvents {
		return pause, true
	}
	return wait, pending
}

// compareRoutes compares by kind, namespace and name.
func compareRoutes(a, b ir.RouteKey) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
