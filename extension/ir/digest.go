// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"iter"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/dump"
)

// A Digest of a Gateway is the sum of its parts, so that it does not depend on
// the order of changes.
type Digest struct {
	Sum uint64

	// Entries is the number of entries that need a translation: routes, policies
	// and identity listeners. A certificate or a bootstrap alone needs none.
	Entries int
}

// GatewayDigest returns the digest of everything that the clusters and routes of a Gateway
// depend on, in 16 hexadecimal digits: the routes that attach to it and name one of ours,
// the shapes of their targets, the permissions, the attached TailscaleRoutePolicies, the
// identity listeners, the client certificate, and whether Envoys have the authority
// tailscale. It is equal in every process that knows the same objects. It is empty for a
// Gateway without any of these.
func (s *Snapshot) GatewayDigest(gateway types.NamespacedName) string {
	d := s.tables.Digests.Get(gateway)
	if d.Entries == 0 {
		return ""
	}
	return d.String()
}

// GatewayDigests returns the digests of all Gateways that have one, in no order.
func (s *Snapshot) GatewayDigests() iter.Seq2[types.NamespacedName, string] {
	return func(yield func(types.NamespacedName, string) bool) {
		for n, d := range s.tables.Digests.All() {
			if d.Entries > 0 && !yield(n, d.String()) {
				return
			}
		}
	}
}

// String returns the digest in 16 hexadecimal digits.
func (d Digest) String() string { return fmt.Sprintf("%016x", d.Sum) }

// Sum returns the hash of a value, and 0 for nil. It is the same in every process.
func Sum(v any) uint64 {
	if v == nil {
		return 0
	}
	h := sha256.Sum256([]byte(dump.ForHash(v)))
	return binary.BigEndian.Uint64(h[:])
}
