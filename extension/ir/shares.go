// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"hash/fnv"
	"strconv"
	"strings"
)

// An EndpointShare is the part of an endpoint list that a backend has.
type EndpointShare struct {
	// Weight among the shares. It is never 0.
	Weight uint32

	// HealthThreshold as in Shape. Zero if the backend has none.
	HealthThreshold uint32

	// Localities of the Snapshot, which must not be changed.
	Localities []Locality

	// Transport is that of the backend's shape.
	Transport string

	// Pending as in Target.
	Pending bool
}

// RouteClusterName returns the name of the cluster that a route's rules have for a target if their
// settings keep them from sharing one: TARGET/KIND/NAMESPACE/NAME, and /rule/RULE if a
// policy is attached to the rule by name. TARGET is the name of the shared cluster and of
// its endpoint list. The name has no index, which another rule may take, and no settings,
// which change in place.
func (s *Snapshot) RouteClusterName(k RouteKey, rule string, t TargetKey) string {
	name := strings.Join([]string{t.ClusterName(), string(k.Kind), k.Namespace, k.Name}, "/")
	if rule != "" && s.tables.Settings.Get(k).Pinned[rule] {
		name += "/rule/" + rule
	}
	return name
}

// RuleName returns the name of the cluster, and of its endpoint list, that holds all
// backends of the route's rule with that index: tailscale/rule/KIND/NAMESPACE/NAME/HASH, and
// /N for the N-th further rule of the same hash. The hash is of the rule's name and
// backends. An index would change with a rule that is inserted before, and neither cluster
// nor list may become that of another rule before Envoy's routes have changed too. Weights
// are not part of the hash, so they change in place.
func (r *Route) RuleName(i int) string {
	n := ruleName{route: r.Key, hash: r.Rules[i].hash()}
	for _, earlier := range r.Rules[:i] {
		if earlier.hash() == n.hash {
			n.further++
		}
	}
	return n.String()
}

// hash returns the hash of the rule's name and backends.
func (r Rule) hash() string {
	const digits = 16
	buf := make([]byte, 0, 128)
	buf = append(append(buf, r.Name...), '\n')
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
	hash  string

	// further is the number of earlier rules with that hash.
	further int
}

// String returns the name that RuleName describes.
func (n ruleName) String() string {
	out := RulePrefix + strings.Join([]string{string(n.route.Kind), n.route.Namespace, n.route.Name, n.hash}, "/")
	if n.further > 0 {
		out += "/" + strconv.Itoa(n.further)
	}
	return out
}

// parseRuleName is the inverse of String.
func parseRuleName(name string) (ruleName, bool) {
	rest, ok := strings.CutPrefix(name, RulePrefix)
	if !ok {
		return ruleName{}, false
	}
	p := strings.Split(rest, "/")
	if len(p) != 4 && len(p) != 5 {
		return ruleName{}, false
	}
	out := ruleName{route: RouteKey{Kind: RouteKind(p[0])}, hash: p[3]}
	out.route.Namespace, out.route.Name = p[1], p[2]
	if len(p) == 4 {
		return out, true
	}
	var err error
	out.further, err = strconv.Atoi(p[4])
	return out, err == nil && out.further > 0
}

// Shares resolves the name of an endpoint list, of a target or of a rule. No other function
// resolves such names. It returns false if no known route uses the list.
func (s *Snapshot) Shares(name string) ([]EndpointShare, bool) {
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
	return []EndpointShare{targetShare(t, 1)}, true
}

// CanonicalList returns the one name of an endpoint list that may be written in several ways, such as with a
// port of five digits. Other names are returned unchanged.
func CanonicalList(name string) string {
	if n, ok := parseRuleName(name); ok {
		return n.String()
	}
	if k, err := ParseClusterName(name); err == nil {
		return k.ClusterName()
	}
	return name
}

// ListNamespace returns the namespace of the target or route of an endpoint list. Empty if the name is
// not one of a list.
func ListNamespace(name string) string {
	if n, ok := parseRuleName(name); ok {
		return n.route.Namespace
	}
	k, err := ParseClusterName(name)
	if err != nil {
		return ""
	}
	return k.Namespace
}

// ruleShares returns the shares of a rule's backends.
func (s *Snapshot) ruleShares(n ruleName) ([]EndpointShare, bool) {
	rule := s.findRule(n)
	if rule == nil {
		return nil, false
	}
	shares := make([]EndpointShare, 0, len(rule.Backends))
	for _, b := range rule.Backends {
		shares = s.backendShare(shares, n.route, b)
	}
	return shares, true
}

// findRule returns the rule with a hash, at any index in the route.
func (s *Snapshot) findRule(n ruleName) *Rule {
	route := s.Route(n.route)
	if route == nil {
		return nil
	}
	for i := range route.Rules {
		r := &route.Rules[i]
		if r.hash() != n.hash {
			continue
		}
		if n.further == 0 {
			return r
		}
		n.further--
	}
	return nil
}

// backendShare appends the share of a backend, if the backend has one.
func (s *Snapshot) backendShare(shares []EndpointShare, k RouteKey, b BackendRef) []EndpointShare {
	switch {
	case b.Weight == 0 || !s.Permitted(k, b):
		return shares
	case b.Kind == BackendService:
		return append(shares, EndpointShare{Weight: b.Weight, Localities: s.Service(b.ServicePort(k.Kind))})
	case !b.Ours():
		return shares
	}
	t := s.Target(b.Target(k.Kind))
	if t == nil {
		return shares
	}
	return append(shares, targetShare(t, b.Weight))
}

// targetShare returns the share of a target.
func targetShare(t *Target, weight uint32) EndpointShare {
	return EndpointShare{Weight: weight, HealthThreshold: t.Shape.HealthThreshold, Localities: t.Localities, Transport: t.Transport, Pending: t.Pending}
}
