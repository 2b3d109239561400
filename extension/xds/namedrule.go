// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"regexp"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
)

// canHandle reports whether a route can handle the requests of another route as it handles its own. It
// cannot if it is nil, or if it replaces a part of the path that those requests need not have.
func canHandle(as, r *routev3.Route) bool {
	return as.GetAction() != nil && (!changesPrefix(as) || samePath(as.GetMatch(), r.GetMatch()))
}

// changesPrefix reports whether a route replaces the prefix that it matches.
func changesPrefix(r *routev3.Route) bool {
	a, redirection := r.GetRoute(), r.GetRedirect()
	return a.GetPrefixRewrite() != "" || redirection.GetPrefixRewrite() != "" ||
		removesPrefix(a.GetRegexRewrite(), r.GetMatch()) || removesPrefix(redirection.GetRegexRewrite(), r.GetMatch())
}

// removesPrefix reports whether an expression is the one with which Envoy Gateway removes the
// prefix of a match (prefix2RegexRewrite in its internal/xds/translator/route.go).
func removesPrefix(e *matcherv3.RegexMatchAndSubstitute, m *routev3.RouteMatch) bool {
	expression := func(prefix string) string { return "^" + regexp.QuoteMeta(prefix) + `\/*` }
	at, regex := m.GetPathSeparatedPrefix()+m.GetPrefix(), e.GetPattern().GetRegex()
	return at != "" && (regex == expression(at) || regex == expression(at+"/"))
}

// samePath reports whether two matches match the same paths.
func samePath(a, b *routev3.RouteMatch) bool {
	path := func(m *routev3.RouteMatch) *routev3.RouteMatch {
		return &routev3.RouteMatch{PathSpecifier: m.GetPathSpecifier(), CaseSensitive: m.GetCaseSensitive()}
	}
	return proto.Equal(path(a), path(b))
}
