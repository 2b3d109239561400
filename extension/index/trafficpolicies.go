// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// settingsObjects are the BackendTrafficPolicies.
type settingsObjects struct {
	trafficPolicies map[types.NamespacedName]*parse.TrafficPolicy
}

func newSettingsObjects() settingsObjects {
	return settingsObjects{trafficPolicies: map[types.NamespacedName]*parse.TrafficPolicy{}}
}

// putSettings stores a BackendTrafficPolicy, and marks the routes that it applies to or
// applied to. The section of routes marks the settings of routes that change.
func putSettings(all *objects, change *input, p *pending) (bool, error) {
	o, ok := change.Object.(*unstructured.Unstructured)
	if !ok {
		return false, nil
	}
	gk := o.GroupVersionKind().GroupKind()
	if gk.Group != parse.GroupEnvoyGateway || gk.Kind != parse.KindTrafficPolicy {
		return false, nil
	}
	old := all.trafficPolicies[change.name]
	delete(all.trafficPolicies, change.name)
	var err error
	if !change.Deleted {
		var policy *parse.TrafficPolicy
		if policy, err = parse.ParseTrafficPolicy(o); err == nil {
			all.trafficPolicies[change.name] = policy
		}
	}
	for k, r := range all.routes {
		if all.concerns(old, r) || all.concerns(all.trafficPolicies[change.name], r) {
			p.markSettings(k)
		}
	}
	return true, errors.Wrapf(err, "cannot read %s %s", gk.Kind, change.name)
}

// markSettings marks the settings of a route.
func (p *pending) markSettings(k ir.RouteKey) {
	p.mark(entry{section: settingsSection, kind: k.Kind, NamespacedName: k.NamespacedName})
}

// serveSettings marks the settings of all routes.
func serveSettings(all *objects, p *pending) {
	for k := range all.routes {
		p.markSettings(k)
	}
}

// recomputeSettings updates the settings of the marked routes.
func recomputeSettings(s *Store, e *edit) {
	for c := range e.marked(settingsSection) {
		k := c.route()
		current := ir.Settings{}
		if r, _ := s.objects.servedRoute(k); r != nil && s.objects.routes[k] != nil {
			current = ir.Settings{Pinned: s.objects.pinned(r), Tunings: s.objects.tunings(r), GatewayPolicies: s.objects.gatewayPolicies(r)}
		}
		old := e.next.Settings.Get(k)
		if old.Equal(current) {
			continue
		}
		e.digest(routeEntry(k), settingsSum(k, old), settingsSum(k, current))
		e.tunings = e.next.PutSettings(e.next, k, current) || e.tunings
	}
}

// settingsSum returns the part of a route's settings in digests.
func settingsSum(k ir.RouteKey, settings ir.Settings) any {
	if settings.Equal(ir.Settings{}) {
		return nil
	}
	return struct {
		Route    ir.RouteKey
		Settings ir.Settings
	}{k, settings}
}

// pinned returns the rules of a route that a policy pins, or nil.
func (all *objects) pinned(r *parse.RouteObject) map[string]bool {
	var out map[string]bool
	for _, p := range all.trafficPolicies {
		for _, rule := range p.PinnedRules(r) {
			if out == nil {
				out = map[string]bool{}
			}
			out[rule] = true
		}
	}
	return out
}

// tunings returns the tunings of a route's rules by name, or nil. The empty name stands for
// rules without a name.
//
// A policy of the rule takes precedence over one of the route, and that over policies of
// what the route attaches to: a listener, a ListenerSet, a Gateway. Of several parents, the
// first with a policy counts, because a rule has one cluster.
func (all *objects) tunings(r *parse.RouteObject) map[string]ir.Tuning {
	var near []*parse.TrafficPolicy
	for _, p := range all.trafficPolicies {
		if p.Rules(r) != nil {
			near = append(near, p)
		}
	}
	names := map[string]bool{"": true}
	for _, rule := range r.Route.Rules {
		names[rule.Name] = true
	}
	var out map[string]ir.Tuning
	parent := all.parentPolicy(r)
	for name := range names {
		t := nearest(near, r, name).MergeOver(parent)
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

// nearest returns the policy among those of a route that applies to one of its rules: the
// rule's own or the route's, or nil.
func nearest(policies []*parse.TrafficPolicy, r *parse.RouteObject, rule string) *parse.TrafficPolicy {
	var best *parse.TrafficPolicy
	exact := false
	for _, p := range policies {
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

// parentPolicy returns the policy of the first parent of a route that has one, or nil.
func (all *objects) parentPolicy(r *parse.RouteObject) *parse.TrafficPolicy {
	for _, parent := range r.Parents {
		var best *parse.TrafficPolicy
		nearest := notApplicable
		for _, p := range all.trafficPolicies {
			d := all.distance(p, parent)
			if d < nearest || d == nearest && d != notApplicable && p.OlderThan(best) {
				best, nearest = p, d
			}
		}
		if best != nil {
			return best
		}
	}
	return nil
}

// gatewayPolicies returns the names of the policies of whole Gateways that a route attaches to, sorted.
func (all *objects) gatewayPolicies(r *parse.RouteObject) []types.NamespacedName {
	gateways := all.gateways(r.Parents)
	var out []types.NamespacedName
	for n, p := range all.trafficPolicies {
		if slices.ContainsFunc(gateways, func(g types.NamespacedName) bool { return p.Places[parse.Parent{NamespacedName: g}] }) {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, ir.CompareNames)
	return out
}

// notApplicable is larger than any distance of a policy that applies.
const notApplicable = 3

// distance returns the distance between a policy and the attachment of a route: 0 for a
// listener, 1 for the Gateway or the ListenerSet, 2 for the ListenerSet's Gateway. A route
// that names no listener attaches to all.
func (all *objects) distance(p *parse.TrafficPolicy, parent parse.Parent) int {
	out := notApplicable
	g, set := all.listenerSets[parent.NamespacedName]
	for at := range p.Places {
		switch {
		case at.ListenerSet == parent.ListenerSet && at.NamespacedName == parent.NamespacedName:
			if at.Section == "" {
				out = min(out, 1)
			} else if parent.Section == "" || parent.Section == at.Section {
				out = 0
			}
		case set && parent.ListenerSet && at == (parse.Parent{NamespacedName: g}):
			out = min(out, 2)
		}
	}
	return out
}

// concerns reports whether a route's clusters or endpoint lists may depend on a policy. It
// returns false for a nil policy.
func (all *objects) concerns(p *parse.TrafficPolicy, r *parse.RouteObject) bool {
	if p == nil {
		return false
	}
	return p.Rules(r) != nil || slices.ContainsFunc(r.Parents, func(parent parse.Parent) bool { return all.distance(p, parent) < notApplicable })
}
