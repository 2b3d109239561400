// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"cmp"
	"fmt"

	"github.com/tailscale-gateway/tailscale-gateway/extension/hooks"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// A problem of a route. The message is the same as long as the cause is the same.
type problem struct {
	route   ir.RouteKey
	message string
}

// remedies are the messages for rules that the hooks left as Envoy Gateway generated them.
// Rules with other reasons are reported in the status of the route, or need no action.
var remedies = map[hooks.Reason]string{
	hooks.Unsupported: "all its backends must be in one Envoy cluster, and only Envoy Gateway has the endpoints of some of them; combine Tailscale backends with Services only, or use a separate rule for the Tailscale backends",
	hooks.Patched:     "it sends requests to a cluster that an EnvoyPatchPolicy or another extension set; remove that cluster or the Tailscale backends",
	hooks.Malformed:   "Envoy would reject the generated configuration; see the log of the extension",
}

// problems returns the problems of all routes: backends without endpoints, client certificates
// that cannot be presented, and rules that the hooks left unchanged. The status of a route
// already reports references that are not permitted.
func problems(s *ir.Snapshot, unchanged map[string][]hooks.SkippedRule) map[problem]struct{} {
	out := map[problem]struct{}{}
	for r := range s.Routes() {
		for i := range r.Rules {
			for _, b := range r.Rules[i].Backends {
				if !b.Ours() || b.Weight == 0 || !s.Permitted(r.Key, b) {
					continue
				}
				if b.Changes != nil {
					for _, refused := range b.Changes.Refused {
						out[problem{route: r.Key, message: fmt.Sprintf("%s: requests to %s get a 500 response because of a filter of the reference: %s; Envoy does not support it for one of several backends, so set it on the rule", rule(r, i), b.NamespacedName, refused)}] = struct{}{}
					}
				}
				t := s.Target(b.Target(r.Key.Kind))
				if t == nil {
					continue
				}
				for _, refused := range t.Refused {
					out[problem{route: r.Key, message: fmt.Sprintf("%s: port %d is not served by all backends: %s", rule(r, i), b.Port, refused)}] = struct{}{}
				}
				reason := cmp.Or(t.Problem, s.Certificates().Withheld(r, t))
				if reason == "" {
					continue
				}
				out[problem{route: r.Key, message: fmt.Sprintf("%s: port %d is not served: %s", rule(r, i), b.Port, reason)}] = struct{}{}
			}
			for _, p := range withoutCertificate(s, r, i) {
				out[problem{route: r.Key, message: fmt.Sprintf("%s: requests that match rule %q of TailscaleRoutePolicy %s get a 503 response: %s", rule(r, i), p.Name, p.Policy, p.Certificate.Problem)}] = struct{}{}
			}
		}
	}
	for _, rules := range unchanged {
		for _, l := range rules {
			reason, ok := remedies[l.Reason]
			r := s.Route(l.Route)
			if !ok || r == nil || l.Rule >= len(r.Rules) {
				continue
			}
			out[problem{route: l.Route, message: fmt.Sprintf("%s is not served: %s", rule(r, l.Rule), reason)}] = struct{}{}
		}
	}
	return out
}

// withoutCertificate returns the policy rules for a rule of a route whose client certificates
// cannot be presented. The status of a policy covers only the certificates that the installed
// extension reads; a dedicated extension reports its own here.
func withoutCertificate(s *ir.Snapshot, r *ir.Route, i int) []*ir.PolicyRule {
	if r.Key.Kind != ir.KindHTTPRoute && r.Key.Kind != ir.KindGRPCRoute {
		return nil
	}
	var out []*ir.PolicyRule
	for _, g := range r.Gateways {
		listeners := []string{""}
		if gateway := s.Gateway(g); gateway != nil {
			listeners = append(listeners, gateway.Sections...)
		}
		for _, l := range listeners {
			for _, p := range s.Policies().Rules(r.Key, r.Rules[i].Name, g, l) {
				if p.Certificate != nil && p.Certificate.Problem != "" {
					out = append(out, p)
				}
			}
		}
	}
	return out
}

// rule returns the name of a rule for messages, or its index if it has no name.
func rule(r *ir.Route, i int) string {
	if name := r.Rules[i].Name; name != "" {
		return fmt.Sprintf("Rule %q", name)
	}
	return fmt.Sprintf("Rule %d", i)
}
