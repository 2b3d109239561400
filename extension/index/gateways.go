// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
	"iter"

	"k8s.io/apimachinery/pkg/types"
)

// A Digest of a Gateway is the sum of its contributors' sums, so that it does not depend on
// the order of changes.
type Digest struct {
	Sum uint64

	// Contributors is the number of contributors that need a translation: routes, policies
	// and identity listeners. A certificate or a bootstrap alone needs none.
	Contributors int
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
	d := s.tables.Digests.Get(gateway)
	if d.Contributors == 0 {
		return ""
	}
	return d.String()
}

// GatewayDigests of all Gateways that have one, in no order.
func (s *Snapshot) GatewayDigests() iter.Seq2[types.NamespacedName, string] {
	return func(yield func(types.NamespacedName, string) bool) {
		for n, d := range s.tables.Digests.All() {
			if d.Contributors > 0 && !yield(n, d.String()) {
				return
			}
		}
	}
}

// String of the digest.
func (d Digest) String() string { return fmt.Sprintf("%016x", d.Sum) }

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
		for k := range c.next.Routes.All() {
			todo[k] = struct{}{}
		}
	}
	for _, k := range c.reshaped {
		now := sum(shapeSum(c.next.Targets.Get(k)))
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
	r := c.next.Routes.Get(k)
	if r == nil {
		return part{}
	}
	p := part{gateways: r.Gateways, sum: sum(routeSum(r)) + sum(settingsSum(k, c.next.Settings.Get(k)))}
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
	add := func(gateway types.NamespacedName, sum uint64, contributors int) {
		d := c.next.Digests.Get(gateway)
		d = Digest{Sum: d.Sum + sum, Contributors: d.Contributors + contributors}
		c.next.Digests.Put(c.next, gateway, d, d == Digest{})
	}
	for _, g := range old.gateways {
		add(g, -old.sum, -one)
	}
	for _, g := range now.gateways {
		add(g, now.sum, one)
	}
}
