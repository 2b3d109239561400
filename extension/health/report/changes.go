// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// Changes are the objects whose reports a Writer has to update.
type Changes struct {
	wake chan struct{}

	// mu guards the fields below.
	mu sync.Mutex

	// running counts concurrent calls of Writer.Run: the next one may begin before the last has ended.
	running int

	// pending are the objects to update. While another replica writes it stays empty, because it
	// would only grow.
	pending map[Object]struct{}
}

// NewChanges returns Changes without any object.
func NewChanges() *Changes {
	return &Changes{wake: make(chan struct{}, 1), pending: map[Object]struct{}{}}
}

// Add announces targets whose endpoints have another health, whose endpoints are others, or
// that are gone. It never blocks.
func (c *Changes) Add(keys []ir.TargetKey) { announce(c, keys, ObjectOf) }

// AddServices announces TailscaleServices to which other routes lead. It never blocks.
func (c *Changes) AddServices(names []types.NamespacedName) { announce(c, names, servicesOf) }

// announce records changed objects, and wakes the Writer if one runs in this replica.
func announce[T any](c *Changes, changed []T, object func(T) Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running == 0 {
		return
	}
	for _, v := range changed {
		c.pending[object(v)] = struct{}{}
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// begin begins to record changes.
func (c *Changes) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running++
}

// end drops recorded changes, unless another Run is active.
func (c *Changes) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running--; c.running == 0 {
		c.pending = map[Object]struct{}{}
	}
}

// take returns the pending objects, and resets them.
func (c *Changes) take() map[Object]struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.pending
	c.pending = map[Object]struct{}{}
	return out
}
