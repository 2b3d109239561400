// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// A part of a route, of a policy, or of listeners, in the digests of its Gateways.
type part struct {
	gateways []types.NamespacedName
	sum      uint64
}

// parts of digests, and the sums that they are made of: a target that a thousand
// routes name is summed up once.
type parts struct {
	routes  map[ir.RouteKey]part
	targets map[ir.TargetKey]uint64
}

func newParts() parts {
	return parts{routes: map[ir.RouteKey]part{}, targets: map[ir.TargetKey]uint64{}}
}

// advanceGateways brings the digests of those Gateways up to date that a change
// concerns.
func (s *Store) advanceGateways(c *change) {
	todo := map[ir.RouteKey]struct{}{}
	for k := range c.routes {
		todo[k] = struct{}{}
	}
	for _, k := range c.pins {
		todo[k] = struct{}{}
	}
	for _, n := range c.policies {
		todo[policyKey(n)] = struct{}{}
	}
	for _, n := range c.identities {
		todo[identityKey(n)] = struct{}{}
	}
	for _, n := range c.certificates {
		todo[certificateKey(n)] = struct{}{}
	}
	for _, n := range c.bootstraps {
		todo[bootstrapKey(n)] = struct{}{}
	}
	if c.granted {
		for k := range c.next.Routes.All() {
			todo[k] = struct{}{}
		}
	}
	for _, k := range c.reshaped {
		now := ir.Sum(shapeSum(c.next.Targets.Get(k)))
		grown := now - s.parts.targets[k]
		if s.parts.targets[k] = now; now == 0 {
			delete(s.parts.targets, k)
		}
		for of := range s.namedBy[consumer{target: k}] {
			if _, ok := todo[of]; ok {
				continue
			}
			p := s.parts.routes[of]
			p.sum += grown
			s.replacePart(c, of, p)
		}
	}
	for k := range todo {
		s.replacePart(c, k, s.part(c, k))
	}
}

// part of a route, from the start.
func (s *Store) part(c *change, k ir.RouteKey) part {
	switch k.Kind {
	case kindPolicy:
		return s.policyPart(c, k.NamespacedName)
	case kindIdentity:
		return identityPart(c, k.NamespacedName)
	case kindCertificate:
		return certificatePart(c, k.NamespacedName)
	case kindBootstrap:
		return bootstrapPart(c, k.NamespacedName)
	}
	r := c.next.Routes.Get(k)
	if r == nil {
		return part{}
	}
	p := part{gateways: r.Gateways, sum: ir.Sum(routeSum(r)) + ir.Sum(settingsSum(k, c.next.Settings.Get(k)))}
	for of := range consumers(r) {
		p.sum += s.parts.targets[of.target]
	}
	for _, rule := range r.Rules {
		for _, b := range rule.Backends {
			if b.Namespace != k.Namespace && c.next.Permitted(k, b) {
				p.sum += ir.Sum(struct{ Permitted ir.BackendRef }{b})
			}
		}
	}
	return p
}

// replacePart of a route in the digests.
func (s *Store) replacePart(c *change, k ir.RouteKey, now part) {
	old, ok := s.parts.routes[k]
	if s.parts.routes[k] = now; len(now.gateways) == 0 {
		delete(s.parts.routes, k)
	}
	if !ok && len(now.gateways) == 0 {
		return
	}
	one := 1
	if k.Kind == kindCertificate || k.Kind == kindBootstrap {
		one = 0
	}
	add := func(gateway types.NamespacedName, sum uint64, contributors int) {
		d := c.next.Digests.Get(gateway)
		d = ir.Digest{Sum: d.Sum + sum, Contributors: d.Contributors + contributors}
		c.next.Digests.Put(c.next, gateway, d, d == ir.Digest{})
	}
	for _, g := range old.gateways {
		add(g, -old.sum, -one)
	}
	for _, g := range now.gateways {
		add(g, now.sum, one)
	}
}
