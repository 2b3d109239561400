// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// A Store holds the newest Snapshot, and builds the next one.
type Store struct {
	snapshot atomic.Pointer[ir.Snapshot]

	// mu guards the fields below. Readers of snapshots never lock it.
	mu      sync.Mutex
	objects *objects

	// namedBy are the routes and policies that name a dependent. A dependent without any is
	// dropped.
	namedBy map[dependent]map[entry]struct{}

	// ruleNames are the names of the endpoint lists of a route's rules, if it has any.
	ruleNames map[entry][]string

	// built are the dependents that exist, and byLookup those by what they look up.
	built    map[dependent]*builtDependent
	byLookup map[ref]map[*builtDependent]struct{}

	// foreign are the routes that name objects of another namespace, by that namespace.
	foreign map[string]map[ir.RouteKey]struct{}

	digests digests

	subscriptions map[*Subscription]struct{}

	// readers are the policies and Gateways for which a Secret may be read.
	readers map[types.NamespacedName]map[entry]struct{}

	// routesChanged is the receiver of Routes.Notify, or nil.
	routesChanged func(services []types.NamespacedName)

	// hosts receives a value when the DNS names that targets need change.
	hosts   chan struct{}
	revised map[chan<- struct{}]struct{}

	metrics *Metrics
}

// NewStore returns a Store with an empty Snapshot.
func NewStore() *Store {
	s := &Store{
		objects:       newObjects(),
		namedBy:       map[dependent]map[entry]struct{}{},
		ruleNames:     map[entry][]string{},
		built:         map[dependent]*builtDependent{},
		byLookup:      map[ref]map[*builtDependent]struct{}{},
		foreign:       map[string]map[ir.RouteKey]struct{}{},
		digests:       newDigests(),
		subscriptions: map[*Subscription]struct{}{},
		readers:       map[types.NamespacedName]map[entry]struct{}{},
		hosts:         make(chan struct{}, 1),
		revised:       map[chan<- struct{}]struct{}{},
		metrics:       newMetrics(),
	}
	s.snapshot.Store(&ir.Snapshot{})
	return s
}

// Snapshot returns the newest Snapshot. It is never nil.
func (s *Store) Snapshot() *ir.Snapshot { return s.snapshot.Load() }

// Serves reports whether routes of a Gateway are served.
func (s *Store) Serves(gateway types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects.serves(gateway)
}

// Hosts returns the DNS names whose addresses targets need, each with the sorted namespaces of these
// targets.
func (s *Store) Hosts() map[string][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string][]string{}
	for r, dependents := range s.byLookup {
		if r.kind != refHost {
			continue
		}
		var namespaces []string
		for c := range dependents {
			namespaces = append(namespaces, c.target.Namespace)
		}
		slices.Sort(namespaces)
		out[r.Name] = slices.Compact(namespaces)
	}
	return out
}

// HostsChanged returns a channel that receives a value when Hosts may have changed. It is
// for one reader.
func (s *Store) HostsChanged() <-chan struct{} { return s.hosts }

// hostsChanged notifies the reader of HostsChanged if a lookup that was added or removed is of a DNS
// name.
func (s *Store) hostsChanged(r ref) {
	if r.kind == refHost {
		notify(s.hosts)
	}
}

// notify sends a value unless one is waiting already.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Metrics returns the metrics of the Store.
func (s *Store) Metrics() *Metrics { return s.metrics }
