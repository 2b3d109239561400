// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
	"iter"
	"maps"

	"k8s.io/apimachinery/pkg/types"
)

// A digest is the sum of its routes' parts, so that it follows from what is there,
// whatever came first.
type digest struct {
	sum uint64

	// routes that it has parts of, policies and listeners among them. A certificate or a
	// bootstrap alone is nothing to translate.
	routes int
}

// A part of a route, of a policy, or of listeners, in the digests of its Gateways.
type part struct {
	gateways []types.NamespacedName
	sum      uint64
}

// parts of digests, and the sums that they are made of: a target that a thousand
// routes name is summed up once.
type parts struct {
	routes  map[RouteKey]part
	targets map[TargetKey]uint64
}

func newParts() parts {
	return parts{routes: map[RouteKey]part{}, targets: map[TargetKey]uint64{}}
}

// GatewayDigest of what clusters and routes of a Gateway are made of, as 16 hexadecimal
// digits: the routes that attach to it and name one of ours, the shapes of what they
// name, what is permitted to them, the TailscaleRoutePolicies that are attached, the
// listeners that are told who asks, the certificate that is presented, and whether Envoys have
// the authority tailscale. It is equal in every process that knows the same objects. Empty for a Gateway without any of them.
func (s *Snapshot) GatewayDigest(gateway types.NamespacedName) string {
	d := s.gateways[gateway]
	if d.routes == 0 {
		return ""
	}
	return d.String()
}

// GatewayDigests of all Gateways that have one, in no order.
func (s *Snapshot) GatewayDigests() iter.Seq2[types.NamespacedName, string] {
	return func(yield func(types.NamespacedName, string) bool) {
		for n, d := range s.gateways {
			if d.routes > 0 && !yield(n, d.String()) {
				return
			}
		}
	}
}

// String of the digest.
func (d digest) String() string { return fmt.Sprintf("%016x", d.sum) }

// advanceGateways brings the digests of those Gateways up to date that a change
// concerns.
func (s *Store) advanceGateways(c *change) {
	todo := map[RouteKey]struct{}{}
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
		for k := range c.next.routes {
			todo[k] = struct{}{}
		}
	}
	for _, k := range c.reshaped {
		now := sum(shapeSum(c.next.targets[k]))
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
func (s *Store) part(c *change, k RouteKey) part {
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
	r := c.next.routes[k]
	if r == nil {
		return part{}
	}
	p := part{gateways: r.Gateways, sum: sum(routeSum(r)) + sum(c.next.pinSum(k))}
	for of := range consumers(r) {
		p.sum += s.parts.targets[of.target]
	}
	for _, rule := range r.Rules {
		for _, b := range rule.Backends {
			if b.Namespace != k.Namespace && c.next.Permitted(k, b) {
				p.sum += sum(struct{ Permitted BackendRef }{b})
			}
		}
	}
	return p
}

// replacePart of a route in the digests.
func (s *Store) replacePart(c *change, k RouteKey, now part) {
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
	digests := clone(c, "gateways", &c.next.gateways)
	for _, g := range old.gateways {
		d := digests[g]
		digests[g] = digest{sum: d.sum - old.sum, routes: d.routes - one}
	}
	for _, g := range now.gateways {
		d := digests[g]
		digests[g] = digest{sum: d.sum + now.sum, routes: d.routes + one}
	}
	maps.DeleteFunc(digests, func(_ types.NamespacedName, d digest) bool { return d == digest{} })
}
