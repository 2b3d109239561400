// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"net/netip"
	"slices"
	"strings"
)

// Nodes see what the policy lets them see. Two nodes are in each other's maps if a rule lets
// either reach the other, on whatever port: nodes that cannot reach each other at all are not in
// the list (juanfont/headscale#1961, where the maintainers describe Tailscale's behaviour; tailcfg
// calls it permission to know). A rule about a service is about its hosts, too, because a client
// reaches the service through them. Services that a node may reach are in its own capabilities
// (tailcfg.NodeAttrPrefixServices, "Services visible (accessible) to this node"). It is an
// assumption that addresses of a service, a name of it, or a subnet route are also only in the maps
// of nodes that may reach it.

// A ruleSet is a set of rules of the policy, by their position.
type ruleSet []uint64

func (r ruleSet) with(i int) ruleSet {
	for len(r) <= i/64 {
		r = append(r, 0)
	}
	r[i/64] |= 1 << (i % 64)
	return r
}

// meets reports whether the sets have a rule in common.
func (r ruleSet) meets(o ruleSet) bool {
	for i := range min(len(r), len(o)) {
		if r[i]&o[i] != 0 {
			return true
		}
	}
	return false
}

// access are the rules that have a node as a source and as a destination.
type access struct {
	src, dst ruleSet
}

// sees reports whether a rule lets either reach the other.
func (a access) sees(b access) bool { return a.src.meets(b.dst) || b.src.meets(a.dst) }

func (a access) equal(b access) bool { return slices.Equal(a.src, b.src) && slices.Equal(a.dst, b.dst) }

// A selection is a selector of a rule: which devices, services and addresses it stands for.
type selection struct {
	any    bool
	prefix netip.Prefix
	// name of a tag or a service.
	name string
	// owner is the tailnet's user, with all untagged devices.
	owner  bool
	tagged bool
}

// A sightRule is a rule of the policy without its ports.
type sightRule struct {
	src, dst []selection
}

// sightRules returns the rules of a policy that let someone reach something.
func (s *Server) sightRules(p *policy) []sightRule {
	var out []sightRule
	for _, r := range slices.Concat(p.Grants, p.ACLs) {
		if r.Action != "" && r.Action != "accept" {
			continue
		}
		v := sightRule{}
		for _, sel := range r.Src {
			v.src = append(v.src, s.selection(p, sel))
		}
		for _, sel := range r.Dst {
			if i := strings.LastIndexByte(sel, ':'); r.Action != "" && i >= 0 {
				sel = sel[:i]
			}
			v.dst = append(v.dst, s.selection(p, sel))
		}
		out = append(out, v)
	}
	return out
}

// selection returns what a selector stands for. An unknown one stands for nothing.
func (s *Server) selection(p *policy, sel string) selection {
	if h, ok := p.Hosts[sel]; ok {
		sel = h
	}
	if pr, err := netip.ParsePrefix(sel); err == nil {
		return selection{prefix: pr.Masked()}
	}
	if a, err := netip.ParseAddr(sel); err == nil {
		return selection{prefix: netip.PrefixFrom(a, a.BitLen())}
	}
	owner := s.profile(userOwner).LoginName
	switch {
	case sel == "*":
		return selection{any: true}
	case sel == "autogroup:tagged":
		return selection{tagged: true}
	case slices.Contains([]string{"autogroup:member", "autogroup:owner", "autogroup:admin", "autogroup:self", owner}, sel), slices.Contains(p.Groups[sel], owner):
		return selection{owner: true}
	}
	return selection{name: sel}
}

// device reports whether the selection includes a device by what it is.
func (x selection) device(d *device) bool {
	switch {
	case x.any, x.tagged && len(d.Tags) > 0, x.owner && len(d.Tags) == 0:
		return true
	case x.prefix.IsValid():
		return x.prefix.Contains(d.IPv4) || x.prefix.Contains(d.IPv6)
	}
	return slices.Contains(d.Tags, x.name)
}

// service reports whether the selection includes a service.
func (x selection) service(v *service) bool {
	switch {
	case x.any:
		return true
	case x.prefix.IsValid():
		return slices.ContainsFunc(v.addrs(), x.prefix.Contains)
	}
	return x.name == v.Name || x.name != "" && slices.Contains(v.Tags, x.name)
}

// route reports whether the selection includes addresses behind a subnet router.
func (x selection) route(p netip.Prefix) bool {
	return x.any || x.prefix.IsValid() && x.prefix.Overlaps(p)
}

// reaching returns the rules whose destination is included.
func reaching(rules []sightRule, included func(selection) bool) ruleSet {
	var out ruleSet
	for i, r := range rules {
		if slices.ContainsFunc(r.dst, included) {
			out = out.with(i)
		}
	}
	return out
}

// sources returns the rules that have a device as a source.
func sources(rules []sightRule, d *device) ruleSet {
	var out ruleSet
	for i, r := range rules {
		if slices.ContainsFunc(r.src, func(x selection) bool { return x.device(d) }) {
			out = out.with(i)
		}
	}
	return out
}
