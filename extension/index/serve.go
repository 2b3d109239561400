// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// Serve routes of some Gateways alone: others have an extension of their own, or this one
// is another's. What no such route names is not known. All are served until it is called.
func (s *Store) Serve(serves func(gateway types.NamespacedName) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	began := time.Now()
	s.serves = serves
	d := newDirty()
	for k := range s.world.routes {
		d.routes[k], d.pins[k] = struct{}{}, struct{}{}
	}
	for n := range s.world.routePolicies {
		d.policies[n] = struct{}{}
	}
	for n := range s.world.identities {
		d.identities[n] = struct{}{}
	}
	for n := range s.world.certificates {
		d.certificates[n] = struct{}{}
	}
	s.advance(d, began)
}

// Serves reports whether routes of a Gateway are served.
func (s *Store) Serves(gateway types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.serves == nil || s.serves(gateway)
}

// served is a route, with those of its Gateways that are. It is nil if none of them is: a
// route of which no Gateway is known yet may be of any.
func (s *Store) served(k ir.RouteKey) (*parse.RouteObject, []types.NamespacedName) {
	p := s.world.routes[k]
	if p == nil {
		return nil, nil
	}
	of := s.world.gateways(p.Parents)
	if s.serves == nil || len(of) == 0 {
		return p, of
	}
	if of = slices.DeleteFunc(of, func(n types.NamespacedName) bool { return !s.serves(n) }); len(of) == 0 {
		return nil, nil
	}
	return p, of
}
