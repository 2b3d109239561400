// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package notice

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
	// settle is how long a problem must last to be told: objects that are applied
	// together come one after the other.
	settle = 5 * time.Second

	// most events at one time. The rest follow after pause.
	most  = 25
	pause = time.Second
)

// A Speaker tells of a problem, or that a route has none any more.
type Speaker interface {
	Tell(ctx context.Context, route ir.RouteKey, message string) error
	TellServed(ctx context.Context, route ir.RouteKey) error
}

// Notices are what is told. Make them by New.
type Notices struct {
	store   *index.Store
	speaker Speaker
	log     logging.Logger
	wake    chan struct{}

	// mu guards left: by Gateway, the rules that the last translation left.
	mu   sync.Mutex
	left map[string][]hooks.LeftRule

	// since when each problem is there, and which were told. Run's alone.
	since map[problem]time.Time
	told  map[problem]bool
}

// New returns Notices that tell nothing until they run.
func New(s *index.Store, speaker Speaker, log logging.Logger) *Notices {
	return &Notices{
		store: s, speaker: speaker, log: log, wake: make(chan struct{}, 1),
		left: map[string][]hooks.LeftRule{}, since: map[problem]time.Time{}, told: map[problem]bool{},
	}
}

// Translated notes the rules that a translation of a Gateway left. It does not wait.
func (n *Notices) Translated(gateway string, left []hooks.LeftRule) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(left) == 0 && len(n.left[gateway]) == 0 {
		return
	}
	if n.left[gateway] = left; len(left) == 0 {
		delete(n.left, gateway)
	}
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// Run until ctx ends. The store must be complete.
func (n *Notices) Run(ctx context.Context) error {
	changes := n.store.Subscribe()
	defer changes.Close()
	revised, end := n.store.Revised()
	defer end()
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		case <-n.wake:
		case <-revised:
		case <-changes.Changed():
			changes.Take()
		}
		if wait, ok := n.look(ctx, time.Now()); ok {
			t.Reset(wait)
		} else {
			t.Stop()
		}
	}
}

// look what has changed, tell what is due, and return when to look again even if
// nothing changes.
func (n *Notices) look(ctx context.Context, now time.Time) (time.Duration, bool) {
	n.mu.Lock()
	left := maps.Clone(n.left)
	n.mu.Unlock()
	there := problems(n.store.Snapshot(), left)

	for p := range there {
		if _, ok := n.since[p]; !ok {
			n.since[p] = now
		}
	}
	gone := map[ir.RouteKey]bool{}
	for p := range n.since {
		if _, ok := there[p]; ok {
			continue
		}
		if n.told[p] {
			gone[p.route] = true
		}
		delete(n.since, p)
		delete(n.told, p)
	}
	for p := range there {
		delete(gone, p.route)
	}
	for _, r := range slices.SortedFunc(maps.Keys(gone), compareRoutes) {
		if err := n.speaker.TellServed(ctx, r); err != nil {
			n.log.Debug("Cannot tell that a route is served", "route", r, "error", err)
		}
	}
	return n.tell(ctx, now)
}

// tell the problems that are due.
func (n *Notices) tell(ctx context.Context, now time.Time) (time.Duration, bool) {
	var due []problem
	wait, waits := time.Duration(0), false
	for p, at := range n.since {
		left := settle - now.Sub(at)
		switch {
		case n.told[p]:
		case left <= 0:
			due = append(due, p)
		case !waits || left < wait:
			wait, waits = left, true
		}
	}
	slices.SortFunc(due, func(a, b problem) int {
		return cmp.Or(compareRoutes(a.route, b.route), cmp.Compare(a.message, b.message))
	})
	for _, p := range due[:min(len(due), most)] {
		// Who cannot be told now is told when the problem comes again: it is on the
		// page all the time, and in metrics.
		n.told[p] = true
		if err := n.speaker.Tell(ctx, p.route, p.message); err != nil {
			n.log.Info("Cannot tell why a route is not served", "route", p.route, "why", p.message, "error", err)
			continue
		}
		n.log.Info("Route is not served", "route", p.route, "why", p.message)
	}
	if len(due) > most {
		return pause, true
	}
	return wait, waits
}

func compareRoutes(a, b ir.RouteKey) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
