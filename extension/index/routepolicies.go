// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// What a TailscaleRoutePolicy does rests on what it is attached to, and on the routes that
// it names rules of, be they of ours or not. So of every HTTPRoute and GRPCRoute it is known where it attaches.

// kindPolicy is the kind of a policy where it stands beside routes, as what names
// targets and has a part of its Gateways' digests.
const kindPolicy ir.RouteKind = "routepolicy"

func policyKey(n types.NamespacedName) ir.RouteKey {
	return ir.RouteKey{Kind: kindPolicy, NamespacedName: n}
}

// A site is where a route attaches, and the names of its rules.
type site struct {
	parents []parse.Parent
	rules   []string
}

// putRoutePolicy keeps a policy, and what it rests on.
func (w *world) putRoutePolicy(o *gatewayv1alpha1.TailscaleRoutePolicy, n types.NamespacedName, gone bool, d *dirty) {
	if old := w.routePolicies[n]; old != nil {
		for _, t := range old.DependsOn() {
			delete(w.resting[t], n)
			if len(w.resting[t]) == 0 {
				delete(w.resting, t)
			}
		}
		for q := range old.Discoveries() {
			delete(w.asks, q)
		}
	}
	d.policies[n] = struct{}{}
	if gone {
		delete(w.routePolicies, n)
		return
	}
	p := parse.ParseRoutePolicy(o)
	w.checkRules(p)
	w.routePolicies[n] = p
	for q := range p.Discoveries() {
		w.asks[q] = n
	}
	for _, t := range p.DependsOn() {
		if w.resting[t] == nil {
			w.resting[t] = map[types.NamespacedName]struct{}{}
		}
		w.resting[t][n] = struct{}{}
	}
}

// putSite keeps where a route attaches.
func (w *world) putSite(p *parse.RouteObject, gone bool, d *dirty) {
	k := p.Route.Key
	if k.Kind != ir.KindHTTPRoute && k.Kind != ir.KindGRPCRoute {
		return
	}
	if gone {
		delete(w.sites, k)
	} else {
		of := &site{parents: p.Parents}
		for _, r := range p.Route.Rules {
			if r.Name != "" {
				of.rules = append(of.rules, r.Name)
			}
		}
		w.sites[k] = of
	}
	w.moved(ir.PolicyTarget{Route: k.Kind, NamespacedName: k.NamespacedName}, d)
}

// moved has policies look again at what they are attached to, or name a rule of.
func (w *world) moved(t ir.PolicyTarget, d *dirty) {
	for n := range w.resting[t] {
		d.policies[n] = struct{}{}
	}
}

// movedSet does so for the routes that attach to a ListenerSet.
func (w *world) movedSet(set types.NamespacedName, d *dirty) {
	for t := range w.resting {
		of := w.sites[t.RouteKey()]
		if of != nil && slices.ContainsFunc(of.parents, func(p parse.Parent) bool { return p.ListenerSet && p.NamespacedName == set }) {
			w.moved(t, d)
		}
	}
}

// attachment of a policy to a target.
func (w *world) attachment(t ir.PolicyTarget) ir.Attachment {
	out := ir.Attachment{PolicyTarget: t}
	if t.Route == "" {
		g := w.abouts[t.NamespacedName]
		if out.Found = g != nil && (t.Section == "" || slices.Contains(g.Sections, t.Section)); out.Found {
			out.Gateways = []types.NamespacedName{t.NamespacedName}
		}
		return out
	}
	of := w.sites[t.RouteKey()]
	if out.Found = of != nil && (t.Section == "" || slices.Contains(of.rules, t.Section)); !out.Found {
		return out
	}
	out.Gateways = w.gateways(of.parents)
	for _, p := range of.parents {
		// Those of a ListenerSet are no target of a policy.
		if !p.ListenerSet {
			out.Listeners = append(out.Listeners, ir.PolicyTarget{NamespacedName: p.NamespacedName, Section: p.Section})
		}
	}
	return out
}

// advancePolicy takes a policy over, and says what it named and names.
func (s *Store) advancePolicy(c *change, n types.NamespacedName, todo map[consumer]struct{}) {
	old := c.next.Policies.Get(n)
	var now *ir.RoutePolicy
	if p := s.world.routePolicies[n]; p != nil {
		now = &ir.RoutePolicy{}
		*now = *p
		now.Targets = nil
		for _, t := range p.Targets {
			at := s.world.attachment(t.PolicyTarget)
			now.Targets = append(now.Targets, at)
			for _, g := range at.Gateways {
				if (s.serves == nil || s.serves(g)) && !slices.Contains(now.Served, g) {
					now.Served = append(now.Served, g)
				}
			}
		}
		now.Rules = slices.Clone(p.Rules)
		s.world.resolve(now)
		s.world.lookUp(now)
		s.world.certify(now)
	}
	s.want(policyKey(n), s.world.wanted(now))
	if reflect.DeepEqual(old, now) {
		return
	}
	c.digest(policySum(old), policySum(now))
	c.policies = append(c.policies, n)
	c.next.Policies.Put(c.next, n, now, now == nil)
	s.names(policyKey(n), policyConsumers(old), policyConsumers(now), todo)
}

// policySum leaves out what nothing is made of.
func policySum(p *ir.RoutePolicy) any {
	if p == nil {
		return nil
	}
	out := *p
	out.Generation, out.Notices, out.Devices = 0, nil, nil
	return out
}

// policyConsumers are the targets that a policy's rules send to, spoken to as the routes
// are that it is attached to.
func policyConsumers(p *ir.RoutePolicy) map[consumer]struct{} {
	out := map[consumer]struct{}{}
	if p == nil {
		return out
	}
	for _, t := range p.Targets {
		kinds := []ir.RouteKind{t.Route}
		if t.Route == "" {
			kinds = []ir.RouteKind{ir.KindHTTPRoute, ir.KindGRPCRoute}
		}
		for _, k := range kinds {
			for _, r := range p.Rules {
				for _, b := range r.Backends {
					out[consumer{target: b.Target(k)}] = struct{}{}
				}
			}
		}
	}
	return out
}

// policyPart is what a policy adds to the digests of the Gateways where it has an effect.
func (s *Store) policyPart(c *change, n types.NamespacedName) part {
	p := c.next.Policies.Get(n)
	if p == nil {
		return part{}
	}
	out := part{gateways: p.Served, sum: ir.Sum(policySum(p))}
	for of := range policyConsumers(p) {
		out.sum += s.parts.targets[of.target]
	}
	return out
}

// attach brings the rules by target up to date.
func (c *change) attach() {
	if len(c.policies) > 0 {
		c.next.PolicyRevision++
		c.next.Attached.Replace(c.next, ir.AttachRules(c.next.Policies.Values()))
	}
}

// CheckRules sets the function that returns why Envoy would refuse what a rule becomes.
// Such a rule is left out, and the others act. It has to be called before the first change
// is applied.
func (s *Store) CheckRules(fn func(*ir.PolicyRule) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.world.check = fn
}

func (w *world) checkRules(p *ir.RoutePolicy) {
	for _, r := range p.Rules {
		if w.check == nil || r.Problem != "" {
			continue
		}
		err := w.check(r)
		if err == nil {
			continue
		}
		if !r.Deny {
			r.Omit(err)
			continue
		}
		for i, m := range r.Matches {
			one := *r
			if one.Matches = []ir.PolicyMatch{m}; w.check(&one) != nil {
				r.Matches[i] = ir.PolicyMatch{}
			}
		}
		r.Widened = err.Error()
	}
}
