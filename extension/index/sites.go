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

// A site holds the attachments of a route, with the names of its rules, and what Envoy Gateway makes
// routes of.
type site struct {
	parents []parse.Parent
	rules   []string

	created     time.Time
	hosts       int
	ruleMatches []madeRule
}

// A madeRule is a rule of a route with the number of its matches.
type madeRule struct {
	name    string
	matches int
}

// attachment returns the state of a policy's target.
func (all *objects) attachment(t ir.PolicyTarget) ir.Attachment {
	out := ir.Attachment{PolicyTarget: t}
	if t.Route == "" {
		g := all.gatewayInfo[t.NamespacedName]
		if out.Found = g != nil && (t.Section == "" || slices.Contains(g.Sections, t.Section)); out.Found {
			out.Gateways = []types.NamespacedName{t.NamespacedName}
		}
		return out
	}
	s := all.sites[t.RouteKey()]
	if out.Found = s != nil && (t.Section == "" || slices.Contains(s.rules, t.Section)); !out.Found {
		return out
	}
	out.Gateways = all.gateways(s.parents)
	for _, p := range s.parents {
		// A policy cannot target a listener of a ListenerSet.
		if !p.ListenerSet {
			out.Listeners = append(out.Listeners, ir.PolicyTarget{NamespacedName: p.NamespacedName, Section: p.Section})
		}
	}
	return out
}

// markDependents marks the policies that depend on a route or Gateway.
func markDependents(all *objects, t ir.PolicyTarget, p *pending) {
	for n := range all.policyDependents[t] {
		p.markName(policySection, n)
	}
}

// markAttached marks the policies that depend on a route that attaches to a ListenerSet.
func markAttached(all *objects, set types.NamespacedName, p *pending) {
	for t := range all.policyDependents {
		s := all.sites[t.RouteKey()]
		if s != nil && slices.ContainsFunc(s.parents, func(p parse.Parent) bool { return p.ListenerSet && p.NamespacedName == set }) {
			markDependents(all, t, p)
		}
	}
}
