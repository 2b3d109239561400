// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// pinned are the rules of a route that any policy pins. Nil means none.
func (w *world) pinned(r *parse.RouteObject) map[string]bool {
	var out map[string]bool
	for _, p := range w.policies {
		for _, rule := range p.PinnedRules(r) {
			if out == nil {
				out = map[string]bool{}
			}
			out[rule] = true
		}
	}
	return out
}

// tunings of a route's rules, by their names, as policies ask for them. The empty name
// stands for rules without one. Nil means none.
//
// A policy of the rule goes before one of the route, and that before those of what the
// route attaches to: a listener, a ListenerSet, a Gateway. Policies of what the route
// attaches to are those of the first that has one, for a rule has one cluster.
func (w *world) tunings(r *parse.RouteObject) map[string]ir.Tuning {
	var near []*parse.TrafficPolicy
	for _, p := range w.policies {
		if p.Rules(r) != nil {
			near = append(near, p)
		}
	}
	names := map[string]bool{"": true}
	for _, rule := range r.Route.Rules {
		names[rule.Name] = true
	}
	var out map[string]ir.Tuning
	above := w.above(r)
	for name := range names {
		t := nearest(near, r, name).MergeOver(above)
		if t.Equal(ir.Tuning{}) {
			continue
		}
		if out == nil {
			out = map[string]ir.Tuning{}
		}
		out[name] = t
	}
	return out
}

// nearest of the policies of a route to one of its rules: the rule's own, or the route's.
// Nil if there is none.
func nearest(of []*parse.TrafficPolicy, r *parse.RouteObject, rule string) *parse.TrafficPolicy {
	var best *parse.TrafficPolicy
	exact := false
	for _, p := range of {
		rules := p.Rules(r)
		own := rule != "" && slices.Contains(rules, rule)
		if !own && !slices.Contains(rules, "") {
			continue
		}
		if best == nil || own && !exact || own == exact && p.OlderThan(best) {
			best, exact = p, own
		}
	}
	return best
}

// above is the policy of what a route attaches to. Nil if there is none.
func (w *world) above(r *parse.RouteObject) *parse.TrafficPolicy {
	for _, of := range r.Parents {
		var best *parse.TrafficPolicy
		nearest := beyond
		for _, p := range w.policies {
			d := w.distance(p, of)
			if d < nearest || d == nearest && d != beyond && p.OlderThan(best) {
				best, nearest = p, d
			}
		}
		if best != nil {
			return best
		}
	}
	return nil
}

// wide are the names of the policies of whole Gateways that a route attaches to, sorted.
func (w *world) wide(r *parse.RouteObject) []types.NamespacedName {
	of := w.gateways(r.Parents)
	var out []types.NamespacedName
	for n, p := range w.policies {
		if slices.ContainsFunc(of, func(g types.NamespacedName) bool { return p.Places[parse.Parent{NamespacedName: g}] }) {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, ir.CompareNames)
	return out
}

// beyond is farther than all that counts.
const beyond = 3

// distance of a policy from where a route attaches: 0 for a listener there, 1 for the
// Gateway or the ListenerSet, 2 for the ListenerSet's Gateway. A route that names no
// listener attaches to any.
func (w *world) distance(p *parse.TrafficPolicy, of parse.Parent) int {
	out := beyond
	g, set := w.listenerSets[of.NamespacedName]
	for at := range p.Places {
		switch {
		case at.ListenerSet == of.ListenerSet && at.NamespacedName == of.NamespacedName:
			if at.Section == "" {
				out = min(out, 1)
			} else if of.Section == "" || of.Section == at.Section {
				out = 0
			}
		case set && of.ListenerSet && at == (parse.Parent{NamespacedName: g}):
			out = min(out, 2)
		}
	}
	return out
}

// concerns reports whether a route's clusters or lists may depend on a policy. Nil concerns
// none.
func (w *world) concerns(p *parse.TrafficPolicy, r *parse.RouteObject) bool {
	if p == nil {
		return false
	}
	return p.Rules(r) != nil || slices.ContainsFunc(r.Parents, func(of parse.Parent) bool { return w.distance(p, of) < beyond })
}
