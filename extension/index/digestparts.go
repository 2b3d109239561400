// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// readmit marks the part of an entry if other Gateways than before admit it: the entry itself may be
// the same.
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
