// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// Routes knows which routes of a Store lead to TailscaleServices.
type Routes struct{ store *Store }

// NewRoutes returns the Routes of a Store.
func NewRoutes(s *Store) Routes { return Routes{store: s} }

// Notify makes the Store call fn after each Snapshot in which other routes may lead to some
// TailscaleServices than in the last one. fn must not block, and must not call the Store.
func (r Routes) Notify(fn func(services []types.NamespacedName)) {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	r.store.routesChanged = fn
}

// RoutesTo returns the routes that lead to TailscaleServices, by these: routes that name one and may do so, and
// routes to a Service that fail over to other clusters by it. Each list has at most so many routes, the
// first by kind, namespace and name. wanted selects the TailscaleServices; nil wants all.
func (r Routes) RoutesTo(wanted func(types.NamespacedName) bool, most int) map[types.NamespacedName][]ir.RouteKey {
	s := r.store
	// The Store is not locked while all targets are looked at, but only for those that are wanted.
	snapshot := s.Snapshot()
	targets := map[ir.TargetKey]types.NamespacedName{}
	for t := range snapshot.Targets() {
		if n, ok := servicesOf(t); ok && (wanted == nil || wanted(n)) {
			targets[t.Key] = n
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[types.NamespacedName][]ir.RouteKey{}
	for k, n := range targets {
		first := out[n]
		for c := range s.namedBy[dependent{target: k}] {
			if c.section == routeSection && leads(snapshot, c.route(), k) {
				first = insertRoute(first, c.route(), most)
			}
		}
		if len(first) > 0 {
			out[n] = first
		}
	}
	return out
}

// servicesOf returns the TailscaleServices of a target, which may be nil. False if there is none.
func servicesOf(t *ir.Target) (types.NamespacedName, bool) {
	switch {
	case t == nil:
	case t.Key.Kind == ir.TargetServices:
		return types.NamespacedName{Namespace: t.Key.Namespace, Name: t.Key.Name}, true
	case t.Key.Kind == ir.TargetFailover:
		return t.Publisher, t.Publisher.Name != ""
	}
	return types.NamespacedName{}, false
}

// leads reports whether a route may name a target that it names.
func leads(s *ir.Snapshot, k ir.RouteKey, target ir.TargetKey) bool {
	if k.Namespace == target.Namespace {
		return true
	}
	r := s.Route(k)
	return r != nil && slices.ContainsFunc(r.Rules, func(rule ir.Rule) bool {
		return slices.ContainsFunc(slices.Concat(rule.Backends, rule.Mirrors), func(b ir.BackendRef) bool {
			return named(b, k.Kind) == target && s.Permitted(k, b)
		})
	})
}

// named returns the target of a backend, or the zero value.
func named(b ir.BackendRef, k ir.RouteKind) ir.TargetKey {
	if b.Ours() {
		return b.Target(k)
	}
	out, _ := b.Failover(k)
	return out
}

// insertRoute inserts a route into sorted ones, of which the first ones stay.
func insertRoute(sorted []ir.RouteKey, k ir.RouteKey, most int) []ir.RouteKey {
	i, found := slices.BinarySearchFunc(sorted, k, func(a, b ir.RouteKey) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), ir.CompareNames(a.NamespacedName, b.NamespacedName))
	})
	if found || i == most {
		return sorted
	}
	sorted = slices.Insert(sorted, i, k)
	return sorted[:min(len(sorted), most)]
}

// lead records that other routes may lead to the TailscaleServices of a target, which may be nil.
func (e *edit) lead(t *ir.Target) {
	n, ok := servicesOf(t)
	if !ok {
		return
	}
	if e.led == nil {
		e.led = map[types.NamespacedName]struct{}{}
	}
	e.led[n] = struct{}{}
}

// leadChanged records the TailscaleServices of the dependents that a route names now and did not before,
// and the reverse.
func (e *edit) leadChanged(old, current map[dependent]struct{}) {
	for _, pair := range [][2]map[dependent]struct{}{{old, current}, {current, old}} {
		for d := range pair[0] {
			if _, ok := pair[1][d]; !ok {
				e.leadTo(d.target)
			}
		}
	}
}

// leadTo records the TailscaleServices of a target that may not be built yet.
func (e *edit) leadTo(k ir.TargetKey) {
	if k.Kind == ir.TargetServices {
		e.lead(&ir.Target{Key: k})
		return
	}
	e.lead(e.next.Targets.Get(k))
}

// leadGranted records the TailscaleServices of other namespaces that the routes name whose permissions
// changed.
func (e *edit) leadGranted() {
	for c := range e.granted {
		if c.section != routeSection {
			continue
		}
		for d := range dependents(e.next.Routes.Get(c.route())) {
			if d.target.Namespace != c.Namespace {
				e.leadTo(d.target)
			}
		}
	}
}

// publishRoutes notifies the receiver of Routes.Notify.
func publishRoutes(s *Store, e *edit) {
	if s.routesChanged == nil {
		return
	}
	e.leadGranted()
	if len(e.led) > 0 {
		s.routesChanged(slices.Collect(maps.Keys(e.led)))
	}
}
