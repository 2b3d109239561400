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
		now := ir.Sum(shapeSum(e.next.Targets.Get(k)))
		grown := now - s.digests.targets[k]
		if s.digests.targets[k] = now; now == 0 {
			delete(s.digests.targets, k)
		}
		for of := range s.namedBy[consumer{target: k}] {
			if _, ok := e.contributors[of]; ok {
				continue
			}
			p := s.digests.contributions[of]
			p.sum += grown
			s.replaceContribution(e, of, p)
		}
	}
	for c := range e.contributors {
		s.replaceContribution(e, c, sections[c.section].digest(s, e, c))
	}
}

// readmit marks the contribution of a contributor that has not changed, if other Gateways than before
// admit it.
func (s *Store) readmit(e *edit, c contributor, now []types.NamespacedName) {
	if !slices.Equal(s.digests.contributions[c].gateways, now) {
		e.contributors[c] = struct{}{}
		e.translate = true
	}
}

// replaceContribution replaces the contribution of a contributor in the digests of Gateways.
func (s *Store) replaceContribution(e *edit, c contributor, now contribution) {
	old, ok := s.digests.contributions[c]
	if s.digests.contributions[c] = now; len(now.gateways) == 0 {
		delete(s.digests.contributions, c)
	}
	if !ok && len(now.gateways) == 0 {
		return
	}
	one := 1
	if sections[c.section].auxiliary {
		one = 0
	}
	add := func(gateway types.NamespacedName, sum uint64, contributors int) {
		d := e.next.Digests.Get(gateway)
		d = ir.Digest{Sum: d.Sum + sum, Contributors: d.Contributors + contributors}
		e.next.Digests.Put(e.next, gateway, d, d == ir.Digest{})
	}
	for _, g := range old.gateways {
		add(g, -old.sum, -one)
	}
	for _, g := range now.gateways {
		add(g, now.sum, one)
	}
}
