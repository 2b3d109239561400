// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// A digestPart is the part of an entry in the digests of its Gateways.
type digestPart struct {
	gateways []types.NamespacedName
	sum      uint64
}

// digestPartOf returns the part of the digest of one Gateway that contains a value. Without a value
// there is none.
func digestPartOf(gateway types.NamespacedName, value any) digestPart {
	if value == nil {
		return digestPart{}
	}
	return digestPart{gateways: []types.NamespacedName{gateway}, sum: ir.Sum(value)}
}

// digests are the parts of the digests of Gateways, and the sums of targets' shapes:
// the shape of a target is summed up once, even if a thousand routes name the target.
type digests struct {
	parts   map[entry]digestPart
	targets map[ir.TargetKey]uint64
}

func newDigests() digests {
	return digests{parts: map[entry]digestPart{}, targets: map[ir.TargetKey]uint64{}}
}

// recomputeDigests updates the digests of Gateways.
func recomputeDigests(s *Store, e *edit) {
	for _, k := range e.reshaped {
		current := ir.Sum(shapeSum(e.next.Targets.Get(k)))
		grown := current - s.digests.targets[k]
		if s.digests.targets[k] = current; current == 0 {
			delete(s.digests.targets, k)
		}
		for c := range s.namedBy[dependent{target: k}] {
			if _, ok := e.entries[c]; ok {
				continue
			}
			p := s.digests.parts[c]
			p.sum += grown
			replaceDigestPart(s, e, c, p)
		}
	}
	for c := range e.entries {
		replaceDigestPart(s, e, c, sections[c.section].digest(s, e, c))
	}
}

// readmit marks the part of an entry that has not changed, if other Gateways than before
// admit it.
func readmit(s *Store, e *edit, c entry, gateways []types.NamespacedName) {
	if !slices.Equal(s.digests.parts[c].gateways, gateways) {
		e.entries[c] = struct{}{}
		e.translate = true
	}
}

// replaceDigestPart replaces the part of an entry in the digests of Gateways.
func replaceDigestPart(s *Store, e *edit, c entry, current digestPart) {
	old, ok := s.digests.parts[c]
	if s.digests.parts[c] = current; len(current.gateways) == 0 {
		delete(s.digests.parts, c)
	}
	if !ok && len(current.gateways) == 0 {
		return
	}
	increment := 1
	if sections[c.section].auxiliary {
		increment = 0
	}
	add := func(gateway types.NamespacedName, sum uint64, entries int) {
		d := e.next.Digests.Get(gateway)
		d = ir.Digest{Sum: d.Sum + sum, Entries: d.Entries + entries}
		e.next.Digests.Put(e.next, gateway, d, d == ir.Digest{})
	}
	for _, g := range old.gateways {
		add(g, -old.sum, -increment)
	}
	for _, g := range current.gateways {
		add(g, current.sum, increment)
	}
}
