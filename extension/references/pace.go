// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"maps"
	"sync"

	"golang.org/x/time/rate"

	"github.com/tailscale-gateway/tailscale-gateway/extension/limits"
)

// Lists of the objects of one namespace: as many at once as there are in all, because one namespace may
// have the Secrets of all others, and then some in a second. All namespaces share the rate of the client,
// from which a list that is cancelled while it waits has taken its part already (golang.org/x/time/rate,
// Reservation.CancelAt): without a pace, a tenant whose policies name other objects again and again would
// have all others wait.
const (
	namespaceLists = 5
	namespaceBurst = limits.Secrets
)

// A pace limits the lists of each namespace. The zero value is usable.
type pace struct {
	mu       sync.Mutex
	limiters map[string]*rate.Limiter
}

// wait waits until a namespace may list, or ctx ends.
func (p *pace) wait(ctx context.Context, namespace string) error {
	return p.limiter(namespace).Wait(ctx)
}

func (p *pace) limiter(namespace string) *rate.Limiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.limiters[namespace]; l != nil {
		return l
	}
	// One that has not been used for a while is like a new one.
	maps.DeleteFunc(p.limiters, func(_ string, l *rate.Limiter) bool { return l.Tokens() >= namespaceBurst })
	if p.limiters == nil {
		p.limiters = map[string]*rate.Limiter{}
	}
	l := rate.NewLimiter(namespaceLists, namespaceBurst)
	p.limiters[namespace] = l
	return l
}
