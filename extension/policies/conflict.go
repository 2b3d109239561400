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

// A conflict is of two rules, of which the first leaves nothing to the second.
type conflict struct {
	first, second *ir.PolicyRule
	kind          gatewayv1alpha1.RoutePolicyConflictType
}

// conflictsOf rules that are attached to one target, in the order in which they are
// asked: each of those that never act with the first that sees to it.
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

// overridden are the rules of a target that do not act where a nearer one is, for the rules
// there do something else.
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

// farther are the targets whose rules are asked after those of a target, about some of the
// same requests (index.Snapshot.PolicyRules). Of listeners those are given that any policy
// is attached to.
func farther(t ir.Attachment, listeners []ir.PolicyTarget) []ir.PolicyTarget {
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

// covers reports whether a rule matches all that another one does.
func covers(a, b *ir.PolicyRule) bool {
	if len(a.Matches) == 0 {
		return true
	}
	bs := b.Matches
	if len(bs) == 0 {
		bs = []ir.PolicyMatch{{}}
	}
	for _, m := range bs {
		if !slices.ContainsFunc(a.Matches, func(of ir.PolicyMatch) bool { return coversMatch(of, m) }) {
			return false
		}
	}
	return true
}

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

func coversPath(a, b ir.Match) bool {
	const exact, prefix = "Exact", "PathPrefix"
	within := strings.TrimSuffix(a.Path, "/")
	switch {
	case a.PathType == "" || a.PathType == prefix && within == "":
		return true
	case a.PathType != prefix:
		return a.PathType == b.PathType && a.Path == b.Path
	case b.PathType != exact && b.PathType != prefix:
		return false
	}
	return strings.TrimSuffix(b.Path, "/") == within || strings.HasPrefix(b.Path, within+"/")
}

// coversClients reports whether all of b are among a. Nobody is no conflict.
func coversClients(a, b []netip.Prefix) bool {
	if a == nil {
		return b == nil || len(b) > 0
	}
	if len(b) == 0 {
		return false
	}
	for _, p := range b {
		if !slices.ContainsFunc(a, func(of netip.Prefix) bool { return of.Bits() <= p.Bits() && of.Contains(p.Addr()) }) {
			return false
		}
	}
	return true
}
