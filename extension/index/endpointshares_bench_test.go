// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
	"testing"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/limits"
)

// BenchmarkEndpointShares measures the decision after the number of a target's endpoints has changed, in a
// namespace within the limit and in one beyond it.
func BenchmarkEndpointShares(b *testing.B) {
	const targets = 5000
	for name, perTarget := range map[string]int{"Within": 1, "Beyond": 2 * limits.NamespaceEndpoints / targets} {
		b.Run(name, func(b *testing.B) {
			s := newEndpointShares()
			key := func(i int) ir.TargetKey {
				return ir.TargetKey{Kind: ir.TargetServices, Namespace: "shop", Name: fmt.Sprintf("t%d", i), Port: 80, Protocol: ir.ProtocolHTTP}
			}
			// Some hundred objects are of the same second.
			created := func(i int) time.Time { return time.Unix(int64(i/500), 0) }
			for i := range targets {
				s.set(key(i), endpointSize{created: created(i), endpoints: perTarget})
			}
			s.settle()
			n := 0
			for b.Loop() {
				n++
				s.set(key(7), endpointSize{created: created(7), endpoints: perTarget + n%2})
				s.settle()
			}
		})
	}
}
