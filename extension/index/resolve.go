// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
)

// identitySeparator comes before the hash of a rule's backends. Envoy keeps it as it is
// in an xdstp name.
const identitySeparator = "@"

// A Share is a backend's part of an endpoint list.
type Share struct {
	// Weight among the shares. It is never zero.
	Weight uint32

	// HealthThreshold as in Shape. Zero if the backend has none.
	HealthThreshold uint32

	// Localities are the snapshot's own, and not to be changed.
	Localities []Locality
}

// RuleName of the endpoint list of a cluster that Envoy Gateway made for a rule, or
// for one of its backends. The name carries a hash of the rule's backends beside the
// rule's index: a rule that is inserted before it moves the index, and the list must
// not turn into another rule's before Envoy's routes have moved too. Weights are not
// part of it, so they change in place.
func RuleName(cluster string, r *Rule) string {
	return RulePrefix + cluster + identitySeparator + r.identity()
}

// identity of the rule's backends.
func (r *Rule) identity() string {
	const digits = 16
	buf := make([]byte, 0, 128)
	for _, b := range r.Backends {
		buf = strconv.AppendInt(buf, int64(b.Kind), 10)
		buf = append(append(buf, '/'), b.Namespace...)
		buf = append(append(buf, '/'), b.Name...)
		buf = strconv.AppendInt(append(buf, '/'), int64(b.Port), 10)
		buf = append(buf, '\n')
	}
	h := fnv.New64a()
	// Hashes never fail.
	_, _ = h.Write(buf)
	out := strconv.FormatUint(h.Sum64(), digits)
	return strings.Repeat("0", digits-len(out)) + out
}

// A ruleName is the parsed name of a rule's endpoint list.
type ruleName struct {
	route RouteKey

	// rule is its index, and backend that of the one backend that is meant, or -1.
	rule, backend int

	// identity of the rule's backends. Empty takes what stands at the index.
	identity string
}

// parseRuleName reads tailscale/rule/KIND/NAMESPACE/NAME/rule/R[/backend/I][@HASH].
// R is -1 for routes whose rules have one cluster together.
func parseRuleName(name string) (ruleName, bool) {
	name, ok := strings.CutPrefix(name, RulePrefix)
	if !ok {
		return ruleName{}, false
	}
	name, identity, _ := strings.Cut(name, identitySeparator)
	p := strings.Split(name, "/")
	if len(p) != 5 && len(p) != 7 || p[3] != "rule" {
		return ruleName{}, false
	}
	out := ruleName{route: RouteKey{Kind: RouteKind(p[0])}, backend: -1, identity: identity}
	out.route.Namespace, out.route.Name = p[1], p[2]

	var err error
	if out.rule, err = strconv.Atoi(p[4]); err != nil {
		return ruleName{}, false
	}
	out.rule = max(out.rule, 0)
	if len(p) == 5 {
		return out, true
	}
	if out.backend, err = strconv.Atoi(p[6]); err != nil || p[5] != "backend" || out.backend < 0 {
		return ruleName{}, false
	}
	return out, true
}

// Shares resolves the name of an endpoint list, of a target or of a rule. It is the
// only place that does. False means that no route asks for it, or none that we have
// heard of.
func (s *Snapshot) Shares(name string) ([]Share, bool) {
	if n, ok := parseRuleName(name); ok {
		return s.ruleShares(n)
	}
	k, err := ParseClusterName(name)
	if err != nil {
		return nil, false
	}
	t := s.Target(k)
	if t == nil {
		return nil, false
	}
	return []Share{targetShare(t, 1)}, true
}

func (s *Snapshot) ruleShares(n ruleName) ([]Share, bool) {
	rule := s.findRule(n)
	if rule == nil {
		return nil, false
	}
	if n.backend >= 0 {
		i := slices.IndexFunc(rule.Backends, func(b BackendRef) bool { return b.Index == n.backend })
		if i < 0 {
			return nil, false
		}
		b := rule.Backends[i]
		b.Weight = 1
		return s.backendShare(nil, n.route, b), true
	}
	shares := make([]Share, 0, len(rule.Backends))
	for _, b := range rule.Backends {
		shares = s.backendShare(shares, n.route, b)
	}
	return shares, true
}

// findRule looks where the name says, then among the route's other rules.
func (s *Snapshot) findRule(n ruleName) *Rule {
	route := s.Route(n.route)
	if route == nil {
		return nil
	}
	if n.rule < len(route.Rules) {
		if r := &route.Rules[n.rule]; n.identity == "" || r.identity() == n.identity {
			return r
		}
	}
	if n.identity == "" {
		return nil
	}
	for i := range route.Rules {
		if r := &route.Rules[i]; r.identity() == n.identity {
			return r
		}
	}
	return nil
}

// backendShare appends the backend's share, if it is to have one.
func (s *Snapshot) backendShare(shares []Share, k RouteKey, b BackendRef) []Share {
	switch {
	case b.Weight == 0:
		return shares
	case b.Kind == BackendService:
		return append(shares, Share{Weight: b.Weight, Localities: s.Service(b.ServicePort(k.Kind))})
	case !b.Ours() || !s.Permitted(k, b):
		return shares
	}
	t := s.Target(b.Target(k.Kind))
	if t == nil {
		return shares
	}
	return append(shares, targetShare(t, b.Weight))
}

func targetShare(t *Target, weight uint32) Share {
	return Share{Weight: weight, HealthThreshold: t.Shape.HealthThreshold, Localities: t.Localities}
}
