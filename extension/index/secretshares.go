// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/limits"
)

// secretShares decide which of the wanted Secrets are watched: of the objects of each namespace the
// oldest ones' up to a limit, which falls for all namespaces alike while they exceed the limit in
// all. The result depends on the objects alone, so that all replicas decide alike.
type secretShares struct {
	wants  map[string]map[contributor]secretWant
	shares map[string]*secretShare

	// dirty are the namespaces whose wants have changed, and most the current limit of a namespace.
	dirty map[string]struct{}
	most  int
}

// A secretWant holds the Secrets of one object, in the object's order.
type secretWant struct {
	created time.Time
	secrets []types.NamespacedName
}

// A secretShare holds the Secrets of the objects of a namespace, as many as it may have at most, and
// which of them are admitted.
type secretShare struct {
	secrets  []types.NamespacedName
	admitted map[types.NamespacedName]struct{}
}

func newSecretShares() *secretShares {
	return &secretShares{
		wants: map[string]map[contributor]secretWant{}, shares: map[string]*secretShare{},
		dirty: map[string]struct{}{}, most: limits.NamespaceSecrets,
	}
}

// set replaces the Secrets that an object wants.
func (s *secretShares) set(c contributor, w secretWant) {
	was, ok := s.wants[c.Namespace][c]
	switch {
	case slices.Equal(was.secrets, w.secrets) && (!ok || was.created.Equal(w.created)):
		return
	case len(w.secrets) == 0:
		delete(s.wants[c.Namespace], c)
	default:
		if s.wants[c.Namespace] == nil {
			s.wants[c.Namespace] = map[contributor]secretWant{}
		}
		s.wants[c.Namespace][c] = w
	}
	s.dirty[c.Namespace] = struct{}{}
}

// admits reports whether the Secret is within the share of the namespace.
func (s *secretShares) admits(namespace string, n types.NamespacedName) bool {
	if s.shares[namespace] == nil {
		return false
	}
	_, ok := s.shares[namespace].admitted[n]
	return ok
}

// settle decides again, and returns the objects with a Secret that is admitted now and was not
// before, or the reverse.
func (s *secretShares) settle() map[contributor]struct{} {
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
	changed := map[contributor]struct{}{}
	for n := range s.dirty {
		s.admit(n, changed)
	}
	clear(s.dirty)
	return changed
}

// collect collects the Secrets of the objects of a namespace.
func (s *secretShares) collect(namespace string) {
	of := s.wants[namespace]
	order := make([]contributor, 0, len(of))
	for c := range of {
		order = append(order, c)
	}
	slices.SortFunc(order, func(a, b contributor) int {
		if d := of[a].created.Compare(of[b].created); d != 0 {
			return d
		}
		return compareContributors(a, b)
	})
	if s.shares[namespace] == nil {
		s.shares[namespace] = &secretShare{}
	}
	share := s.shares[namespace]
	share.secrets = nil
	seen := map[types.NamespacedName]struct{}{}
	for _, c := range order {
		for _, n := range of[c].secrets {
			if _, ok := seen[n]; ok {
				continue
			}
			if len(seen) == limits.NamespaceSecrets {
				return
			}
			seen[n] = struct{}{}
			share.secrets = append(share.secrets, n)
		}
	}
}

// limit returns the greatest limit of a namespace with which all namespaces together stay within the
// limit in all.
func (s *secretShares) limit() int {
	// sizes are the numbers of namespaces with at least as many Secrets as the index, from 1.
	sizes := [limits.NamespaceSecrets + 1]int{}
	for _, of := range s.shares {
		for i := range of.secrets {
			sizes[i+1]++
		}
	}
	total := 0
	for most := 1; most < len(sizes); most++ {
		if total += sizes[most]; total > limits.Secrets {
			return most - 1
		}
	}
	return limits.NamespaceSecrets
}

// admit decides about the Secrets of a namespace, and adds the objects for which something changed.
func (s *secretShares) admit(namespace string, changed map[contributor]struct{}) {
	share := s.shares[namespace]
	was := share.admitted
	share.admitted = map[types.NamespacedName]struct{}{}
	for _, n := range share.secrets[:min(len(share.secrets), s.most)] {
		share.admitted[n] = struct{}{}
	}
	for c, w := range s.wants[namespace] {
		for _, n := range w.secrets {
			_, before := was[n]
			if _, ok := share.admitted[n]; ok != before {
				changed[c] = struct{}{}
			}
		}
	}
	if len(share.secrets) == 0 {
		delete(s.shares, namespace)
		delete(s.wants, namespace)
	}
}
