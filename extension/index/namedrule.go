// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
	"slices"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// findNamedRules sets the problems of the rules of routes that the policy's rules name.
func findNamedRules(all *objects, p *ir.RoutePolicy) {
	for i, r := range p.Rules {
		if r.Named == nil || r.Problem != "" {
			continue
		}
		updated, n := *r, *r.Named
		updated.Named, p.Rules[i] = &n, &updated
		if n.Problem = namedRuleProblem(all, p, &n); n.Problem != "" {
			p.Notices[r.Name] = join(p.Notices[r.Name], "Requests are answered 500: "+n.Problem)
		}
	}
}

// namedRuleProblem returns why a rule of a route cannot handle requests for a policy. It is
// empty if the rule can.
func namedRuleProblem(all *objects, p *ir.RoutePolicy, n *ir.NamedRule) string {
	at := all.attachment(n.PolicyTarget)
	switch {
	case all.sites[n.RouteKey()] == nil:
		return fmt.Sprintf("%s does not exist", n)
	case !at.Found:
		return fmt.Sprintf("%s has no rule %s", n, n.Section)
	}
	for _, t := range p.Targets {
		for _, g := range t.Gateways {
			if !slices.Contains(at.Gateways, g) {
				return fmt.Sprintf("%s is not attached to Gateway %s", n, g)
			}
		}
	}
	return ""
}
