// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// foreignGrant is a ReferenceGrant of namespace other for routes of namespace shop.
const foreignGrant = `
apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {name: routes, namespace: other}
spec:
  from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: shop}]
  to: [{group: gateway.tailscale.com, kind: TailscaleServices}]`

// TestGrantCost checks that a ReferenceGrant costs nothing for the routes that name no object of its
// namespace, however many there are.
func TestGrantCost(t *testing.T) {
	allocs := func(routes int) float64 {
		s := NewStore()
		for i := range routes {
			r := strings.Replace(routeToWeb, "{name: web,", fmt.Sprintf("{name: r-%d,", i), 1)
			if err := s.Apply(Change{Object: decode(t, r)[0]}); err != nil {
				t.Fatal(err)
			}
		}
		grants := []client.Object{decode(t, foreignGrant)[0], decode(t, strings.Replace(foreignGrant, "namespace: shop", "namespace: store", 1))[0]}
		i := 0
		return testing.AllocsPerRun(10, func() {
			i++
			if err := s.Apply(Change{Object: grants[i%2]}); err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, many := allocs(10), allocs(500); many > 1.5*few {
		t.Errorf("A ReferenceGrant allocates %.0f times with 500 routes, want about as often as with 10: %.0f", many, few)
	}
}
