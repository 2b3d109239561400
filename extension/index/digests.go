// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// A contribution is the part of a contributor in the digests of its Gateways.
type contribution struct {
	gateways []types.NamespacedName
	sum      uint64
}

// contributionOf returns the contribution of a part to the digest of one Gateway. A nil part
// contributes nothing.
func contributionOf(gateway types.NamespacedName, part any) contribution {
	if part == nil {
		return contribution{}
	}
	return contribution{gateways: []types.NamespacedName{gateway}, sum: ir.Sum(part)}
}

// digests are the contributions to the digests of Gateways, and the sums of targets' shapes:
// the shape of a target is summed up once, even if a thousand routes name the target.
type digests struct {
	contributions map[contributor]contribution
	targets       map[ir.TargetKey]uint64
}

func newDigests() digests {
	return digests{contributions: map[contributor]contribution{}, targets: map[ir.TargetKey]uint64{}}
}

// recomputeDigests updates the digests of Gateways.
func (s *Store) recomputeDigests(e *edit) {
	for _, k := range e.reshaped {
		current := ir.Sum(shapeSum(e.next.Targets.Get(k)))
		grown := current - s.digests.targets[k]
		if s.digests.targets[k] = current; current == 0 {
			delete(s.digests.targets, k)
		}
		for dependent := range s.namedBy[consumer{target: k}] {
			if _, ok := e.contributors[dependent]; ok {
				continue
			}
			p := s.digests.contributions[dependent]
			p.sum += grown
			s.replaceContribution(e, dependent, p)
		}
	}
	for c := range e.contributors {
		s.replaceContribution(e, c, sections[c.section].digest(s, e, c))
	}
}

// readmit marks the contribution of a contributor that has not changed, if other Gateways than before
// admit it.
func (s *Store) readmit(e *edit, c contributor, gateways []types.NamespacedName) {
	if !slices.Equal(s.digests.contributions[c].gateways, gateways) {
		e.contributors[c] = struct{}{}
		e.translate = true
	}
}

// replaceContribution replaces the contribution of a contributor in the digests of Gateways.
func (s *Store) replaceContribution(e *edit, c contributor, current contribution) {
	old, ok := s.digests.contributions[c]
	if s.digests.contributions[c] = current; len(current.gateways) == 0 {
		delete(s.digests.contributions, c)
	}
	if !ok && len(current.gateways) == 0 {
		return
	}
	increment := 1
	if sections[c.section].auxiliary {
		increment = 0
	}
	add := func(gateway types.NamespacedName, sum uint64, contributors int) {
		d := e.next.Digests.Get(gateway)
		d = ir.Digest{Sum: d.Sum + sum, Contributors: d.Contributors + contributors}
		e.next.Digests.Put(e.next, gateway, d, d == ir.Digest{})
	}
	for _, g := range old.gateways {
		add(g, -old.sum, -increment)
	}
	for _, g := range current.gateways {
		add(g, current.sum, increment)
	}
}
