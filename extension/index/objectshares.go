// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// objectShares decide which of the wanted Secrets or ConfigMaps are watched: of the objects that name
// them in each namespace the oldest ones' up to a limit, which falls for all namespaces alike while
// they exceed the limit in all. The result depends on the objects alone, so that all replicas decide
// alike.
type objectShares struct {
	// perNamespace is the limit of a namespace, and total that of all.
	perNamespace, total int

	wants  map[string]map[entry]objectWant
	shares map[string]*objectShare

	// dirty are the namespaces whose wants have changed, and most the current limit of a namespace.
	dirty map[string]struct{}
	most  int

	// changed receives a value when others are admitted.
	changed chan<- struct{}
}

// An objectWant holds what one object names, in the object's order.
type objectWant struct {
	created time.Time
	names   []types.NamespacedName
}

// An objectShare holds what the objects of a namespace name, as many as it may have at most, and which
// of them are admitted.
type objectShare struct {
	names    []types.NamespacedName
	admitted map[types.NamespacedName]struct{}
}

func newObjectShares(perNamespace, total int, changed chan<- struct{}) *objectShares {
	return &objectShares{
		perNamespace: perNamespace, total: total, changed: changed,
		wants: map[string]map[entry]objectWant{}, shares: map[string]*objectShare{},
		dirty: map[string]struct{}{}, most: perNamespace,
	}
}

// set replaces what an object wants.
func (s *objectShares) set(c entry, w objectWant) {
	previous, ok := s.wants[c.Namespace][c]
	switch {
	case slices.Equal(previous.names, w.names) && (!ok || previous.created.Equal(w.created)):
		return
	case len(w.names) == 0:
		delete(s.wants[c.Namespace], c)
	default:
		if s.wants[c.Namespace] == nil {
			s.wants[c.Namespace] = map[entry]objectWant{}
		}
		s.wants[c.Namespace][c] = w
	}
	s.dirty[c.Namespace] = struct{}{}
}

// admits reports whether what an object of a namespace names is within the share of the namespace.
func (s *objectShares) admits(namespace string, n types.NamespacedName) bool {
	if s.shares[namespace] == nil {
		return false
	}
	_, ok := s.shares[namespace].admitted[n]
	return ok
}

// settle decides again, and returns the objects that name something that is admitted now and was not
// before, or the reverse.
func (s *objectShares) settle() map[entry]struct{} {
	if len(s.dirty) == 0 {
		return nil
	}
	for n := range s.dirty {
		s.collect(n)
	}
	if most := s.limit(); most != s.most {
		s.most = most
		for n := range s.shares {
			s.dirty[n] = struct{}{}
		}
	}
	changed := map[entry]struct{}{}
	for n := range s.dirty {
		s.admit(n, changed)
	}
	clear(s.dirty)
	return changed
}

// collect collects what the objects of a namespace name.
func (s *objectShares) collect(namespace string) {
	wants := s.wants[namespace]
	order := make([]entry, 0, len(wants))
	for c := range wants {
		order = append(order, c)
	}
	slices.SortFunc(order, func(a, b entry) int {
		if d := wants[a].created.Compare(wants[b].created); d != 0 {
			return d
		}
		return compareEntries(a, b)
	})
	if s.shares[namespace] == nil {
		s.shares[namespace] = &objectShare{}
	}
	share := s.shares[namespace]
	share.names = nil
	seen := map[types.NamespacedName]struct{}{}
	for _, c := range order {
		for _, n := range wants[c].names {
			if _, ok := seen[n]; ok {
				continue
			}
			if len(seen) == s.perNamespace {
				return
			}
			seen[n] = struct{}{}
			share.names = append(share.names, n)
		}
	}
}

// limit returns the greatest limit of a namespace with which all namespaces together stay within the
// limit in all.
func (s *objectShares) limit() int {
	// sizes are the numbers of namespaces that name at least as many as the index, from 1.
	sizes := make([]int, s.perNamespace+1)
	for _, share := range s.shares {
		for i := range share.names {
			sizes[i+1]++
		}
	}
	total := 0
	for most := 1; most < len(sizes); most++ {
		if total += sizes[most]; total > s.total {
			return most - 1
		}
	}
	return s.perNamespace
}

// admit decides about a namespace, and adds the objects for which something changed.
func (s *objectShares) admit(namespace string, changed map[entry]struct{}) {
	share := s.shares[namespace]
	previous := share.admitted
	share.admitted = map[types.NamespacedName]struct{}{}
	for _, n := range share.names[:min(len(share.names), s.most)] {
		share.admitted[n] = struct{}{}
	}
	if !maps.Equal(previous, share.admitted) {
		notify(s.changed)
	}
	for c, w := range s.wants[namespace] {
		for _, n := range w.names {
			_, prior := previous[n]
			if _, ok := share.admitted[n]; ok != prior {
				changed[c] = struct{}{}
			}
		}
	}
	if len(share.names) == 0 {
		delete(s.shares, namespace)
		delete(s.wants, namespace)
	}
}

// admitted returns what some shares admit, sorted, each once.
func admitted(set ...*objectShares) []types.NamespacedName {
	out := []types.NamespacedName{}
	for _, s := range set {
		for _, share := range s.shares {
			out = slices.AppendSeq(out, maps.Keys(share.admitted))
		}
	}
	slices.SortFunc(out, ir.CompareNames)
	return slices.Compact(out)
}
