// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

// A PolicyTarget is a possible target of a TailscaleRoutePolicy: a Gateway, an HTTPRoute or
// a GRPCRoute.
type PolicyTarget struct {
	// Route is empty for a Gateway.
	Route RouteKind
	types.NamespacedName

	// Section is a listener of a Gateway, or a rule of a route. Empty means all.
	Section string
}

// Whole returns the target without its section.
func (t PolicyTarget) Whole() PolicyTarget {
	t.Section = ""
	return t
}

// RouteKey returns the key of the route. It is meaningless for a Gateway.
func (t PolicyTarget) RouteKey() RouteKey {
	return RouteKey{Kind: t.Route, NamespacedName: t.NamespacedName}
}

// An Attachment is the state of a policy's target.
type Attachment struct {
	PolicyTarget

	// Found reports that the target exists, and its section.
	Found bool

	// Gateways through which the policy takes effect there, sorted.
	Gateways []types.NamespacedName

	// Listeners of Gateways that a route names. A listener without a section stands for all
	// of a Gateway.
	Listeners []PolicyTarget
}

// A RoutePolicy is a TailscaleRoutePolicy.
type RoutePolicy struct {
	Name       types.NamespacedName
	Generation int64
	Created    time.Time
	Targets    []Attachment

	// Served are those Gateways through which the policy takes effect that the extension
	// serves.
	Served []types.NamespacedName

	// FailOpen reports that Envoy Gateway publishes Gateways without the policy when the extension
	// returns an error. It is shown to people.
	FailOpen bool

	// Rules in order, including those that cannot be used.
	Rules []*PolicyRule

	// Notices say, by rule, which devices or named rule are not known, and the state of its
	// certificate. Devices are the numbers of known devices. Both are shown to people.
	Notices map[string]string
	Devices map[string]int32

	// Refused are routes that policies would insert too many routes for, with the reasons, which
	// are shown to people. All of their requests that the policy applies to are denied.
	Refused map[RouteKey]string
}

// Discoveries returns the device queries of the rules, by the names of the Discoveries.
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

// DependsOn returns the Gateways and routes that the policy is attached to, and the routes
// that it names rules of.
func (p *RoutePolicy) DependsOn() []PolicyTarget {
	var out []PolicyTarget
	for _, t := range p.Targets {
		out = append(out, t.Whole())
	}
	for _, r := range p.Rules {
		if r.Named != nil {
			out = append(out, r.Named.Whole())
		}
	}
	return out
}

// CertificateSecrets returns the Secrets of the policy's client certificates, each once.
func (p *RoutePolicy) CertificateSecrets() []types.NamespacedName {
	var out []types.NamespacedName
	for _, r := range p.Rules {
		if r.Certificate != nil && r.Problem == "" && !slices.Contains(out, r.Certificate.Secret) {
			out = append(out, r.Certificate.Secret)
		}
	}
	return out
}

// NamesForeignSecret reports whether the policy names a Secret of another namespace.
func (p *RoutePolicy) NamesForeignSecret() bool {
	return slices.ContainsFunc(p.CertificateSecrets(), func(n types.NamespacedName) bool { return n.Namespace != p.Name.Namespace })
}

// A PolicyRule applies its actions to the requests that it matches.
type PolicyRule struct {
	Policy   types.NamespacedName
	Created  time.Time
	Name     string
	Index    int
	Priority int32

	// Problem says why the rule is omitted. It is shown to people. Empty means that the rule
	// is in use.
	Problem string

	// Widened says why a Deny rule denies more than its spec describes: one of its
	// conditions cannot be built.
	Widened string

	// Matches are alternatives. None means all requests.
	Matches []PolicyMatch

	// Deny, Redirect, Backends and Named exclude each other. Without any of them, the route
	// handles the request as before.
	Deny     bool
	Redirect *PolicyRedirect
	Backends []BackendRef
	Named    *NamedRule

	Request, Response HeaderChange

	// RateLimit of requests, or nil.
	RateLimit *RateLimit

	// Timeout of a request. Nil keeps that of the route.
	Timeout *time.Duration

	// Certificate that is presented to backends. Nil keeps that of the Gateway.
	Certificate *ClientCertificate
}

// A PolicyMatch is met by a request that meets all of its conditions.
type PolicyMatch struct {
	Match

	// PathSize is the estimated number of instructions of the path's compiled expression.
	PathSize int

	// Devices selects the devices of a tailnet that match. Clients holds their addresses.
	Devices *DeviceQuery

	// Clients are the addresses of matching clients, sorted. Nil means any client, and an
	// empty list no client.
	Clients []netip.Prefix

	// NamesOnly reports that only names select the devices, and users choose the names of
	// their devices. A rule with any action denies requests that meet the match.
	NamesOnly bool
}

// A PolicyRedirect is the target of a redirect. Empty fields keep the part of the request.
type PolicyRedirect struct {
	Scheme, Hostname, Path string
	Port                   int32
	StatusCode             int32
}

// A RateLimit is a number of requests in a period.
type RateLimit struct {
	Requests uint32
	Period   time.Duration
}

// A HeaderChange changes headers: it sets and removes headers before it adds any.
type HeaderChange struct {
	Set, Add []Header
	Remove   []string
}

// A Header is the name and value of a header.
type Header struct{ Name, Value string }

// RoutePolicyLabel is on the Discoveries that find the devices of a policy's matches. Its
// value is empty: the name of a Discovery identifies the policy.
const RoutePolicyLabel = "gateway.tailscale.com/route-policy"

// A DeviceQuery selects devices of a tailnet. All lists are sorted.
type DeviceQuery struct {
	Tailnet                string
	Tags, Hostnames, Users []string
}

// Discovery returns the name of the Discovery that finds the devices for a policy.
func (q *DeviceQuery) Discovery(policy types.NamespacedName) types.NamespacedName {
	h := Sum(*q)
	b := []byte{byte(h >> 56), byte(h >> 48), byte(h >> 40), byte(h >> 32), byte(h >> 24)}
	return Sibling(policy, names.RoutePolicyDiscovery(policy.Name, hex.EncodeToString(b)))
}

// A NamedRule is a rule of a route that handles the requests that a policy's rule matches.
// If the route has no such rule, nothing else handles them.
type NamedRule struct {
	PolicyTarget

	// Problem says why the rule cannot handle requests. It is shown to people. It does not
	// cover how Envoy Gateway translates the route, which is not known here.
	Problem string
}

// String returns KIND NAMESPACE/NAME.
func (n *NamedRule) String() string {
	if n.Route == "" {
		return n.NamespacedName.String()
	}
	return n.Route.Manifest() + " " + n.NamespacedName.String()
}

// DenialNotice returns why the rule denies requests that its author did not mean to deny, or
// which conditions make the set of denied clients certain. It is shown to people, and empty
// for most rules.
func (r *PolicyRule) DenialNotice() string {
	i := slices.IndexFunc(r.Matches, func(m PolicyMatch) bool { return m.NamesOnly })
	switch {
	case r.Problem == "" && r.Widened != "":
		return "A condition that cannot be applied is ignored, so the rule denies more requests: " + r.Widened
	case i < 0 || r.Problem != "":
		return ""
	case r.Deny:
		return fmt.Sprintf("matches[%d].tailnetDevice: users choose the names of their devices, and who chooses another is not denied: set tags or users beside hostnames", i)
	}
	return fmt.Sprintf("matches[%d].tailnetDevice: users choose the names of their devices, so hostnames alone let nobody in: set tags or users beside them. Until then such devices are answered 403", i)
}

// Omit leaves the rule out because of an error, and drops its matches, so that no Discovery
// looks for its devices.
func (r *PolicyRule) Omit(err error) { r.Problem, r.Matches = err.Error(), nil }

// SameAction reports whether two rules have the same actions.
func (r *PolicyRule) SameAction(o *PolicyRule) bool {
	return Sum(r.action()) == Sum(o.action())
}

// action returns the rule without its matches and identity.
func (r *PolicyRule) action() any {
	out := *r
	out.Policy, out.Created, out.Name, out.Index, out.Priority, out.Matches, out.Widened = types.NamespacedName{}, time.Time{}, "", 0, 0, nil, ""
	if r.Named != nil {
		out.Named = &NamedRule{PolicyTarget: r.Named.PolicyTarget}
	}
	return out
}

// compareRules orders the rules of one level by precedence.
func compareRules(a, b *PolicyRule) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Created.Compare(b.Created), CompareNames(a.Policy, b.Policy), cmp.Compare(a.Index, b.Index))
}

// AttachedPolicies are the TailscaleRoutePolicies of a Snapshot and what they apply to.
type AttachedPolicies struct{ tables *Tables }

// Policies returns the TailscaleRoutePolicies.
func (s *Snapshot) Policies() AttachedPolicies { return AttachedPolicies{&s.tables} }

// Exist reports whether any TailscaleRoutePolicy is attached.
func (a AttachedPolicies) Exist() bool { return a.tables.Attached.Len() > 0 }

// Rules returns the rules for requests of a route's rule at a listener of a Gateway,
// in order of precedence and without omitted rules.
func (a AttachedPolicies) Rules(route RouteKey, rule string, gateway types.NamespacedName, listener string) []*PolicyRule {
	at := PolicyTarget{Route: route.Kind, NamespacedName: route.NamespacedName, Section: rule}
	parent := PolicyTarget{NamespacedName: gateway, Section: listener}
	levels := [...][]*PolicyRule{a.Attached(at), a.Attached(at.Whole()), a.Attached(parent), a.Attached(parent.Whole())}
	n := 0
	for _, rules := range levels {
		n += len(rules)
	}
	if n == 0 {
		return nil
	}
	out := make([]*PolicyRule, 0, n)
	for _, rules := range levels {
		for _, r := range rules {
			if !slices.Contains(out, r) {
				out = append(out, r)
			}
		}
	}
	return out
}

// Refuses reports whether policies would insert too many routes for a route that a policy applies to.
func (a AttachedPolicies) Refuses(policy types.NamespacedName, route RouteKey) bool {
	p := a.tables.Policies.Get(policy)
	return p != nil && p.Refused[route] != ""
}

// Attached returns the rules that are attached to exactly this target, in order of
// precedence. The caller must not change them.
func (a AttachedPolicies) Attached(t PolicyTarget) []*PolicyRule { return a.tables.Attached.Get(t) }

// All returns all policies, in no order.
func (a AttachedPolicies) All() iter.Seq[*RoutePolicy] { return a.tables.Policies.Values() }

// RulesAt returns the rules of policies that are attached to exactly a target, in order of precedence.
func RulesAt(t PolicyTarget, policies iter.Seq[*RoutePolicy]) []*PolicyRule {
	var out []*PolicyRule
	for p := range policies {
		for _, at := range p.Targets {
			if at.PolicyTarget == t {
				out = appendRules(out, p)
			}
		}
	}
	slices.SortFunc(out, compareRules)
	return out
}

// appendRules appends the rules of a policy that are not omitted.
func appendRules(out []*PolicyRule, p *RoutePolicy) []*PolicyRule {
	for _, r := range p.Rules {
		if r.Problem == "" {
			out = append(out, r)
		}
	}
	return out
}

// AttachRules returns the rules of policies by target, in order of precedence.
func AttachRules(policies iter.Seq[*RoutePolicy]) map[PolicyTarget][]*PolicyRule {
	out := map[PolicyTarget][]*PolicyRule{}
	for p := range policies {
		for _, t := range p.Targets {
			if rules := appendRules(out[t.PolicyTarget], p); len(rules) > 0 {
				out[t.PolicyTarget] = rules
			}
		}
	}
	for _, rules := range out {
		slices.SortFunc(rules, compareRules)
	}
	return out
}
