// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// mergeAfter is the number of changes after which their names are merged.
const mergeAfter = 16

// A Subscription collects the names of endpoint lists that changed, until the subscriber
// takes them.
type Subscription struct {
	store *Store
	wake  chan struct{}

	// mu guards changes, which are lists without duplicates, and tunings, which reports that the tunings
	// that policies set have changed.
	mu      sync.Mutex
	changes [][]string
	tunings bool
}

// Subscribe subscribes to changes. A subscriber that reads the Snapshot afterwards misses
// none. It must close the Subscription.
func (s *Store) Subscribe() *Subscription {
	sub := &Subscription{store: s, wake: make(chan struct{}, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subscriptions[sub] = struct{}{}
	return sub
}

// Changed returns a channel that receives a value when there are changes to take.
func (s *Subscription) Changed() <-chan struct{} { return s.wake }

// Take returns the names of the endpoint lists that may have changed since the last call: of targets,
// and of rules with several backends in the form of RuleName, even if no single cluster
// holds all backends. The names are in no order, each once, and must not be changed. It also reports
// whether policies may have other tunings, which are of no single list. The Snapshot already has the
// changes.
func (s *Subscription) Take() (lists []string, tunings bool) {
	s.mu.Lock()
	changes, tunings := s.changes, s.tunings
	s.changes, s.tunings = nil, false
	s.mu.Unlock()
	return merged(changes), tunings
}

// Each calls fn with what Take returns of each change until ctx ends. It never fails.
func (s *Subscription) Each(ctx context.Context, fn func(lists []string, tunings bool)) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.Changed():
			fn(s.Take())
		}
	}
}

// merged returns the names of all changes, each once.
func merged(changes [][]string) []string {
	if len(changes) == 0 {
		return nil
	}
	if len(changes) == 1 {
		return changes[0]
	}
	seen := make(map[string]struct{}, len(changes[0]))
	for _, names := range changes {
		for _, n := range names {
			seen[n] = struct{}{}
		}
	}
	return slices.Collect(maps.Keys(seen))
}

// Close ends the subscription.
func (s *Subscription) Close() {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	delete(s.store.subscriptions, s)
}

func (s *Subscription) add(names []string, tunings bool) {
	s.mu.Lock()
	s.tunings = s.tunings || tunings
	s.changes = append(s.changes, names)
	if len(s.changes) > mergeAfter {
		s.changes = [][]string{merged(s.changes)}
	}
	s.mu.Unlock()
	notify(s.wake)
}

// Revised returns a channel that receives a value when the Revision, the state of a
// TailscaleRoutePolicy or what is not applied of BackendTLSPolicies changes, and a function that ends
// the notifications. The receiver reads the Snapshot, because several changes may be one value.
func (s *Store) Revised() (changed <-chan struct{}, end func()) {
	c := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revised[c] = struct{}{}
	return c, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.revised, c)
	}
}

// revise notifies the receivers of Revised.
func (s *Store) revise() {
	for c := range s.revised {
		notify(c)
	}
}

// publish notifies subscriptions of the endpoint lists and of the tunings that changed.
func (s *Store) publish(e *edit) {
	if len(s.subscriptions) == 0 {
		return
	}
	most := 0
	for c := range e.endpoints {
		most += 1 + len(s.namedBy[c])
	}
	names := make([]string, 0, most)
	// A route may name several dependents, and be granted besides. A single dependent cannot name it twice.
	seen, alone := map[entry]struct{}{}, len(e.endpoints) <= 1 && len(e.granted) == 0
	for c := range e.endpoints {
		if c.target != (ir.TargetKey{}) {
			names = append(names, c.target.ClusterName())
		}
		for k := range s.namedBy[c] {
			if _, ok := e.routes[k]; ok {
				continue
			}
			if !alone {
				if _, ok := seen[k]; ok {
					continue
				}
				seen[k] = struct{}{}
			}
			names = append(names, s.ruleNames[k]...)
		}
	}
	for k := range e.granted {
		_, changed := e.routes[k]
		if _, ok := seen[k]; !ok && !changed {
			names = append(names, s.ruleNames[k]...)
		}
	}
	for k, old := range e.routes {
		current := s.ruleNames[k]
		names = append(names, current...)
		for _, n := range old {
			if !slices.Contains(current, n) {
				names = append(names, n)
			}
		}
	}
	if len(names) == 0 && !e.tunings {
		return
	}
	for sub := range s.subscriptions {
		sub.add(names, e.tunings)
	}
}

// ruleNames returns the names of the endpoint lists that a route's rules may have.
func ruleNames(r *ir.Route) []string {
	var out []string
	for i, rule := range r.Rules {
		if rule.Ours() && len(rule.Backends) > 1 {
			out = append(out, r.RuleName(i))
		}
	}
	return out
}
