// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A PolicyTarget is what a TailscaleRoutePolicy may be attached to: a Gateway, an
// HTTPRoute or a GRPCRoute.
type PolicyTarget struct {
	// Route is empty for a Gateway.
	Route RouteKind
	types.NamespacedName

	// Section is a listener of a Gateway, or a rule of a route. Empty means all.
	Section string
}

// whole target, without its section.
func (t PolicyTarget) whole() PolicyTarget {
	t.Section = ""
	return t
}

// key of the route. It is meaningless for a Gateway.
func (t PolicyTarget) key() RouteKey {
	return RouteKey{Kind: t.Route, NamespacedName: t.NamespacedName}
}

// An Attachment is what is known of a target of a policy.
type Attachment struct {
	PolicyTarget

	// Found reports that the target exists, and its section.
	Found bool

	// Gateways by which the policy takes effect there, sorted.
	Gateways []types.NamespacedName

	// Listeners of Gateways that a route names. Without a section it is all of a Gateway's.
	Listeners []PolicyTarget
}

// A RoutePolicy is a TailscaleRoutePolicy.
type RoutePolicy struct {
	Name       types.NamespacedName
	Generation int64
	Created    time.Time
	Targets    []Attachment

	// Served are the Gateways by which it takes effect and that are served here.
	Served []types.NamespacedName

	// Rules in their order, with those that cannot be used.
	Rules []*PolicyRule

	// Notices tell, by rule, why not all of its devices are known, or the rule that it
	// names, and of its certificate. Devices are how many are known. Both are for people.
	Notices map[string]string
	Devices map[string]int32
}

// Discoveries that look for the devices of rules, by name.
func (p *RoutePolicy) Discoveries() map[types.NamespacedName]*DeviceQuery {
	out := map[types.NamespacedName]*DeviceQuery{}
	for _, r := range p.Rules {
		for _, m := range r.Matches {
			if m.Devices != nil && r.Problem == "" {
				out[m.Devices.Discovery(p.Name)] = m.Devices
			}
		}
	}
	return out
}

// A PolicyRule does something to the requests that it matches.
type PolicyRule struct {
	Policy   types.NamespacedName
	Created  time.Time
	Name     string
	Index    int
	Priority int32

	// Problem says why the rule is left out, for people. Empty means that it is not.
	Problem string

	// Widened says why a Deny denies more than it says: a condition of it cannot be built.
	Widened string

	// Matches of which one must match. None means all requests.
	Matches []PolicyMatch

	// Deny, or Redirect, or send to Backends, or do as the Named rule does. Without any of
	// them the route does what it does.
	Deny     bool
	Redirect *PolicyRedirect
	Backends []BackendRef
	Named    *NamedRule

	Request, Response HeaderChange

	// RateLimit of requests. Nil is none.
	RateLimit *RateLimit

	// Timeout of a request. Nil leaves the route's.
	Timeout *time.Duration

	// Certificate that is presented to backends. Nil leaves that of the Gateway.
	Certificate *ClientCertificate
}

// A PolicyMatch is met by a request that meets all of it.
type PolicyMatch struct {
	Match

	// Devices of a tailnet that may ask. They are among Clients.
	Devices *DeviceQuery

	// Clients are the addresses of which the client has one, sorted. Nil means any
	// client, and none that nobody is meant.
	Clients []netip.Prefix

	// NamesAlone tell the devices, and their users choose these. Whatever the rule does
	// otherwise, it denies what meets the match.
	NamesAlone bool
}

// A PolicyRedirect says where clients are sent. What is empty stays.
type PolicyRedirect struct {
	Scheme, Hostname, Path string
	Port                   int32
	StatusCode             int32
}

// A RateLimit is how many requests are let through in a time.
type RateLimit struct {
	Requests uint32
	Per      time.Duration
}

// A HeaderChange is done to headers: those that are set or removed go first.
type HeaderChange struct {
	Set, Add []Header
	Remove   []string
}

// A Header and its value.
type Header struct{ Name, Value string }

// Closed says why the rule denies what it is not to deny, or what to set for it to be
// certain whom it denies. It is for people, and empty for most rules.
func (r *PolicyRule) Closed() string {
	i := slices.IndexFunc(r.Matches, func(m PolicyMatch) bool { return m.NamesAlone })
	switch {
	case r.Problem == "" && r.Widened != "":
		return "What cannot be a condition is none, so more is denied: " + r.Widened
	case i < 0 || r.Problem != "":
		return ""
	case r.Deny:
		return fmt.Sprintf("matches[%d].tailnetDevice: users choose the names of their devices, and who chooses another is not denied: set tags or users beside hostnames", i)
	}
	return fmt.Sprintf("matches[%d].tailnetDevice: users choose the names of their devices, so hostnames alone let nobody in: set tags or users beside them. Until then such devices are answered 403", i)
}

// Omit leaves the rule out because of an error. Its devices are not looked for.
func (r *PolicyRule) Omit(err error) { r.Problem, r.Matches = err.Error(), nil }

// SameAction reports whether two rules do the same.
func (r *PolicyRule) SameAction(o *PolicyRule) bool {
	return sum(r.action()) == sum(o.action())
}

// action is what the rule does, without what it matches.
func (r *PolicyRule) action() any {
	out := *r
	out.Policy, out.Created, out.Name, out.Index, out.Priority, out.Matches, out.Widened = types.NamespacedName{}, time.Time{}, "", 0, 0, nil, ""
	if r.Named != nil {
		out.Named = &NamedRule{PolicyTarget: r.Named.PolicyTarget}
	}
	return out
}

// compareRules of one level by who is asked first.
func compareRules(a, b *PolicyRule) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Created.Compare(b.Created), compareNames(a.Policy, b.Policy), cmp.Compare(a.Index, b.Index))
}

// HasPolicies reports whether there is any TailscaleRoutePolicy.
func (s *Snapshot) HasPolicies() bool { return s.tables.Attached.Len() > 0 }

// PolicyRules for requests of a rule of a route at a listener of a Gateway, in the order
// in which they are asked. Those that are left out are not among them.
func (s *Snapshot) PolicyRules(route RouteKey, rule string, gateway types.NamespacedName, listener string) []*PolicyRule {
	at := PolicyTarget{Route: route.Kind, NamespacedName: route.NamespacedName, Section: rule}
	of := PolicyTarget{NamespacedName: gateway, Section: listener}
	var out []*PolicyRule
	for _, t := range []PolicyTarget{at, at.whole(), of, of.whole()} {
		for _, r := range s.tables.Attached.Get(t) {
			if !slices.Contains(out, r) {
				out = append(out, r)
			}
		}
	}
	return out
}

// AttachedRules are the rules that are attached to just this target, in the order in which
// they are asked. They are not to be changed.
func (s *Snapshot) AttachedRules(t PolicyTarget) []*PolicyRule { return s.tables.Attached.Get(t) }

// RoutePolicies are all that are known, in no order.
func (s *Snapshot) RoutePolicies() iter.Seq[*RoutePolicy] { return s.tables.Policies.Values() }

// AttachRules returns the rules of policies by what they are attached to, in the order in
// which they are evaluated.
func AttachRules(policies iter.Seq[*RoutePolicy]) map[PolicyTarget][]*PolicyRule {
	out := map[PolicyTarget][]*PolicyRule{}
	for p := range policies {
		for _, t := range p.Targets {
			for _, r := range p.Rules {
				if r.Problem == "" {
					out[t.PolicyTarget] = append(out[t.PolicyTarget], r)
				}
			}
		}
	}
	for _, rules := range out {
		slices.SortFunc(rules, compareRules)
	}
	return out
}
