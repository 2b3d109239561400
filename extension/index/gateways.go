// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"reflect"

	"k8s.io/apimachinery/pkg/types"
)

// advanceAbout takes over what is known of a Gateway.
func (s *Store) advanceAbout(c *change, n types.NamespacedName) {
	now := s.world.abouts[n]
	if reflect.DeepEqual(c.next.Gateways.Get(n), now) {
		return
	}
	c.next.Gateways.Put(c.next, n, now, now == nil)
}
