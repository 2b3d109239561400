// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"net/netip"
	"slices"
	"strings"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// A conflict is a pair of rules: the first matches all requests of the second.
type conflict struct {
	first, second *ir.PolicyRule
	kind          gatewayv1alpha1.RoutePolicyConflictType
}

// conflictsOf returns the conflicts between the rules of one target, which are given in the
// order of their evaluation. A rule that is never reached conflicts with the first rule that
// covers it.
func conflictsOf(rules []*ir.PolicyRule) []conflict {
	var out []conflict
	for i, r := range rules {
		at := slices.IndexFunc(rules[:i], func(e *ir.PolicyRule) bool { return covers(e, r) })
		if at < 0 {
			continue
		}
		c := conflict{first: rules[at], second: r, kind: gatewayv1alpha1.ConflictingAction}
		switch {
		case c.first.SameAction(r):
			c.kind = gatewayv1alpha1.OverlappingRule
		case c.first.Priority == r.Priority:
			c.kind = gatewayv1alpha1.PriorityConflict
		}
		out = append(out, c)
	}
	return out
}

// overridden returns the conflicts of rules of a target with those of a more specific one that
// cover them and have another action.
func overridden(near, far []*ir.PolicyRule) []conflict {
	var out []conflict
	for _, r := range far {
		at := slices.IndexFunc(near, func(e *ir.PolicyRule) bool { return covers(e, r) })
		if at >= 0 && !near[at].SameAction(r) {
			out = append(out, conflict{first: near[at], second: r, kind: gatewayv1alpha1.ConflictingAction})
		}
	}
	return out
}

// lessSpecificTargets returns the targets whose rules are evaluated after those of a target for
// some of the same requests (ir.AttachedPolicies.Rules). The listeners are those with
// policies.
func lessSpecificTargets(t ir.Attachment, listeners []ir.PolicyTarget) []ir.PolicyTarget {
	var out []ir.PolicyTarget
	if t.Section != "" {
		out = append(out, ir.PolicyTarget{Route: t.Route, NamespacedName: t.NamespacedName})
	}
	if t.Route == "" {
		return out
	}
	for _, l := range listeners {
		if slices.Contains(t.Listeners, l) || slices.Contains(t.Listeners, ir.PolicyTarget{NamespacedName: l.NamespacedName}) {
			out = append(out, l)
		}
	}
	for _, g := range t.Gateways {
		out = append(out, ir.PolicyTarget{NamespacedName: g})
	}
	return out
}

// covers reports whether a rule matches all requests that another one matches.
func covers(a, b *ir.PolicyRule) bool {
	if len(a.Matches) == 0 {
		return true
	}
	bs := b.Matches
	if len(bs) == 0 {
		bs = []ir.PolicyMatch{{}}
	}
	for _, m := range bs {
		if !slices.ContainsFunc(a.Matches, func(candidate ir.PolicyMatch) bool { return coversMatch(candidate, m) }) {
			return false
		}
	}
	return true
}

// coversMatch reports whether a match includes another one.
func coversMatch(a, b ir.PolicyMatch) bool {
	if a.Method != "" && a.Method != b.Method {
		return false
	}
	for _, h := range a.Headers {
		if !slices.Contains(b.Headers, h) {
			return false
		}
	}
	return coversPath(a.Match, b.Match) && coversClients(a.Clients, b.Clients)
}

// coversPath reports whether a path match includes another one.
func coversPath(a, b ir.Match) bool {
	const exact, prefix = "Exact", "PathPrefix"
	base := strings.TrimSuffix(a.Path, "/")
	switch {
	case a.PathType == "" || a.PathType == prefix && base == "":
		return true
	case a.PathType != prefix:
		return a.PathType == b.PathType && a.Path == b.Path
	case b.PathType != exact && b.PathType != prefix:
		return false
	}
	return strings.TrimSuffix(b.Path, "/") == base || strings.HasPrefix(b.Path, base+"/")
}

// coversClients reports whether all clients of b are among those of a. A match without clients
// is no conflict.
func coversClients(a, b []netip.Prefix) bool {
	if a == nil {
		return b == nil || len(b) > 0
	}
	if len(b) == 0 {
		return false
	}
	for _, p := range b {
		if !slices.ContainsFunc(a, func(candidate netip.Prefix) bool { return candidate.Bits() <= p.Bits() && candidate.Contains(p.Addr()) }) {
			return false
		}
	}
	return true
}
