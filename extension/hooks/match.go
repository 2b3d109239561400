// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

const (
	methodHeader = ":method"

	pathExact  = "Exact"
	pathPrefix = "PathPrefix"
	pathRegex  = "RegularExpression"

	// pathAny is the type for a match without a path, as with CONNECT.
	pathAny = ""
)

// matchOf returns the Gateway API match that Envoy Gateway translated to a match of Envoy
// (buildXdsRouteMatch in its internal/xds/translator/route.go).
func matchOf(m *routev3.RouteMatch) ir.Match {
	var out ir.Match
	switch p := m.GetPathSpecifier().(type) {
	case *routev3.RouteMatch_Path:
		out.PathType, out.Path = pathExact, p.Path
	case *routev3.RouteMatch_Prefix:
		out.PathType, out.Path = pathPrefix, p.Prefix
	case *routev3.RouteMatch_PathSeparatedPrefix:
		out.PathType, out.Path = pathPrefix, p.PathSeparatedPrefix
	case *routev3.RouteMatch_SafeRegex:
		out.PathType, out.Path = pathRegex, p.SafeRegex.GetRegex()
	default:
		out.PathType = pathAny
	}
	for _, h := range m.GetHeaders() {
		if h.GetName() == methodHeader {
			out.Method = h.GetStringMatch().GetExact()
			continue
		}
		out.Headers = append(out.Headers, condition(strings.ToLower(h.GetName()), h.GetStringMatch()))
	}
	for _, q := range m.GetQueryParameters() {
		out.Query = append(out.Query, condition(q.GetName(), q.GetStringMatch()))
	}
	slices.Sort(out.Headers)
	slices.Sort(out.Query)
	return out
}

// condition returns a condition in the index's notation.
func condition(name string, m *matcherv3.StringMatcher) string {
	switch p := m.GetMatchPattern().(type) {
	case *matcherv3.StringMatcher_Exact:
		return name + "=" + p.Exact
	case *matcherv3.StringMatcher_SafeRegex:
		return name + "=~" + p.SafeRegex.GetRegex()
	case *matcherv3.StringMatcher_Suffix:
		return name + "=*" + p.Suffix
	}
	return name
}

// sameMatches reports whether the matches of a rule in the message and in the snapshot correspond
// one to one. A name has only the rule's index. While the snapshot lags behind Envoy Gateway or
// runs ahead of it, another rule may have that index.
func sameMatches(message, rule []ir.Match) bool {
	if len(rule) == 0 {
		rule = []ir.Match{{}}
	}
	for _, m := range message {
		if !slices.ContainsFunc(rule, func(r ir.Match) bool { return sameMatch(m, r) }) {
			return false
		}
	}
	for _, r := range rule {
		if !slices.ContainsFunc(message, func(m ir.Match) bool { return sameMatch(m, r) }) {
			return false
		}
	}
	return true
}

func sameMatch(message, rule ir.Match) bool {
	if message.Method != rule.Method {
		return false
	}
	if message.PathType != pathAny {
		pathType, path := normalPath(rule)
		messageType, messagePath := normalPath(message)
		if messageType != pathType || messagePath != path {
			return false
		}
	}
	return sameConditions(message.Headers, rule.Headers) && sameConditions(message.Query, rule.Query)
}

// normalPath returns the path as Envoy Gateway writes it: without a trailing slash, and with the
// default.
func normalPath(m ir.Match) (string, string) {
	if m.PathType == "" {
		m.PathType = pathPrefix
	}
	if m.PathType == pathPrefix {
		m.Path = strings.TrimSuffix(m.Path, "/")
	}
	return m.PathType, m.Path
}

// sameConditions compares sorted lists. A name without a value in the rule's list matches any
// value.
func sameConditions(message, rule []string) bool {
	return slices.EqualFunc(message, rule, func(m, r string) bool {
		if m == r {
			return true
		}
		name, _, _ := strings.Cut(m, "=")
		return name == r
	})
}
