// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"maps"
	"slices"
	"sync"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// mergeAfter so many changes that nobody took, names are told apart.
const mergeAfter = 16

// A Subscription collects the names of endpoints that changed, until they are taken.
type Subscription struct {
	store *Store
	wake  chan struct{}

	// mu guards changes, which are lists without duplicates.
	mu      sync.Mutex
	changes [][]string
}

// Subscribe to changes from now on. Who subscribes reads the Snapshot afterwards, and
// so misses none. Close it at the end.
func (s *Store) Subscribe() *Subscription {
	sub := &Subscription{store: s, wake: make(chan struct{}, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subscriptions[sub] = struct{}{}
	return sub
}

// Changed is sent to when names may be taken.
func (s *Subscription) Changed() <-chan struct{} { return s.wake }

// Take the names whose endpoints changed since they were last taken: of targets, and of
// rules with several backends as RuleName has them, whether or not one cluster holds these.
// They are in no order, each once, and not to be changed. The Snapshot has the changes
// already.
func (s *Subscription) Take() []string {
	s.mu.Lock()
	changes := s.changes
	s.changes = nil
	s.mu.Unlock()
	return merged(changes)
}

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

func (s *Subscription) add(names []string) {
	s.mu.Lock()
	s.changes = append(s.changes, names)
	if len(s.changes) > mergeAfter {
		s.changes = [][]string{merged(s.changes)}
	}
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Revised returns a channel that is sent to when the Revision is another one, or
// something else is known of a TailscaleRoutePolicy, and what ends that. Who is sent to
// reads the Snapshot: several changes may be one send.
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

func (s *Store) revise() {
	for c := range s.revised {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// publish what changed.
func (s *Store) publish(c *change) {
	if len(s.subscriptions) == 0 {
		return
	}
	most := 0
	for _, of := range c.endpoints {
		most += 1 + len(s.namedBy[of])
	}
	names := make([]string, 0, most)
	// A route may name several of them. Of one alone none can come twice.
	seen := map[ir.RouteKey]struct{}{}
	for _, of := range c.endpoints {
		if of.target != (ir.TargetKey{}) {
			names = append(names, of.target.ClusterName())
		}
		for k := range s.namedBy[of] {
			if _, ok := c.routes[k]; ok {
				continue
			}
			if len(c.endpoints) > 1 {
				if _, ok := seen[k]; ok {
					continue
				}
				seen[k] = struct{}{}
			}
			names = append(names, s.ruleNames[k]...)
		}
	}
	for k, old := range c.routes {
		now := s.ruleNames[k]
		names = append(names, now...)
		for _, n := range old {
			if !slices.Contains(now, n) {
				names = append(names, n)
			}
		}
	}
	if len(names) == 0 {
		return
	}
	for sub := range s.subscriptions {
		sub.add(names)
	}
}

// ruleNames are the names of endpoints that a route's rules may have.
func ruleNames(r *ir.Route) []string {
	var out []string
	for i, rule := range r.Rules {
		if rule.Ours() && len(rule.Backends) > 1 {
			out = append(out, r.RuleName(i))
		}
	}
	return out
}
