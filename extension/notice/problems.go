// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package notice

import (
	"cmp"
	"fmt"

	"github.com/tailscale-gateway/tailscale-gateway/extension/hooks"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// A problem of a route, for people. It does not change while the cause does not.
type problem struct {
	route   ir.RouteKey
	message string
}

// remedies of rules that were left as Envoy Gateway made them. The others are told in
// the status of the route, or pass by themselves.
var remedies = map[hooks.Reason]string{ //nolint:gochecknoglobals // A constant map.
	hooks.Unsupported: "all its backends must be in one cluster of Envoy, and of some only Envoy Gateway knows the endpoints; name Services beside Tailscale backends, or give these a rule of their own",
	hooks.Patched:     "it sends requests to a cluster that an EnvoyPatchPolicy or another extension has put there; take that away, or the Tailscale backends",
	hooks.Malformed:   "Envoy would refuse what was made of it; the extension's log says more",
}

// problems that there are: backends that nothing answers for, certificates that cannot be
// presented to them, and rules that were left. What is not permitted, the route's own
// status says.
func problems(s *ir.Snapshot, left map[string][]hooks.LeftRule) map[problem]struct{} {
	out := map[problem]struct{}{}
	for r := range s.Routes() {
		for i := range r.Rules {
			for _, b := range r.Rules[i].Backends {
				if !b.Ours() || b.Weight == 0 || !s.Permitted(r.Key, b) {
					continue
				}
				if b.Changes != nil {
					for _, refused := range b.Changes.Refused {
						out[problem{route: r.Key, message: fmt.Sprintf("%s: a filter of the reference to %s is left out: %s; Envoy cannot do that for one of several backends, so set it on the rule", rule(r, i), b.NamespacedName, refused)}] = struct{}{}
					}
				}
				t := s.Target(b.Target(r.Key.Kind))
				if t == nil {
					continue
				}
				for _, refused := range t.Refused {
					out[problem{route: r.Key, message: fmt.Sprintf("%s: port %d is not served by all backends: %s", rule(r, i), b.Port, refused)}] = struct{}{}
				}
				why := cmp.Or(t.Problem, s.Withheld(r, t))
				if why == "" {
					continue
				}
				out[problem{route: r.Key, message: fmt.Sprintf("%s: port %d is not served: %s", rule(r, i), b.Port, why)}] = struct{}{}
			}
			for _, p := range unpresented(s, r, i) {
				out[problem{route: r.Key, message: fmt.Sprintf("%s: what rule %q of TailscaleRoutePolicy %s matches is answered 503: %s", rule(r, i), p.Name, p.Policy, p.Certificate.Problem)}] = struct{}{}
			}
		}
	}
	for _, of := range left {
		for _, l := range of {
			why, ok := remedies[l.Reason]
			r := s.Route(l.Route)
			if !ok || r == nil || l.Rule >= len(r.Rules) {
				continue
			}
			out[problem{route: l.Route, message: fmt.Sprintf("%s is not served: %s", rule(r, l.Rule), why)}] = struct{}{}
		}
	}
	return out
}

// unpresented are rules of policies for a rule of a route whose certificates cannot be
// presented. The status of a policy tells of those that the installed extension reads: of
// what another reads only that one knows.
func unpresented(s *ir.Snapshot, r *ir.Route, i int) []*ir.PolicyRule {
	if r.Key.Kind != ir.KindHTTPRoute && r.Key.Kind != ir.KindGRPCRoute {
		return nil
	}
	var out []*ir.PolicyRule
	for _, g := range r.Gateways {
		listeners := []string{""}
		if about := s.Gateway(g); about != nil {
			listeners = append(listeners, about.Sections...)
		}
		for _, l := range listeners {
			for _, p := range s.PolicyRules(r.Key, r.Rules[i].Name, g, l) {
				if p.Certificate != nil && p.Certificate.Problem != "" {
					out = append(out, p)
				}
			}
		}
	}
	return out
}

// rule of a route, by its name if it has one.
func rule(r *ir.Route, i int) string {
	if name := r.Rules[i].Name; name != "" {
		return fmt.Sprintf("Rule %q", name)
	}
	return fmt.Sprintf("Rule %d", i)
}
