// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"strconv"
	"strings"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

const (
	// ruleSegment stands before a rule's index in names.
	ruleSegment = "rule"

	// l4Rule is the index of the one cluster that all rules of an L4 route have.
	l4Rule = -1

	// invalidCluster does not exist: requests that it gets fail with a status code
	// of the route's (Envoy Gateway's internal/xds/translator/route.go).
	invalidCluster = "invalid-backend-cluster"
)

// A ruleKey names a rule as Envoy Gateway does: by its route, and by its index there
// (internal/gatewayapi/helpers.go).
type ruleKey struct {
	route ir.RouteKey
	rule  int
}

// cluster that Envoy Gateway makes for the rule: KIND/NAMESPACE/NAME/rule/INDEX.
func (k ruleKey) cluster() string {
	return strings.Join([]string{string(k.route.Kind), k.route.Namespace, k.route.Name, ruleSegment, strconv.Itoa(k.rule)}, "/")
}

// backend is the cluster of one backend of the rule.
func (k ruleKey) backend(i int) string { return k.cluster() + "/backend/" + strconv.Itoa(i) }

// mirror is the cluster of the RequestMirror filter with that index.
func (k ruleKey) mirror(i int) string { return k.cluster() + "-mirror-" + strconv.Itoa(i) }

// nth name of several clusters: the first is called by the name alone.
func nth(name string, n int) string {
	if n == 0 {
		return name
	}
	return name + "/" + strconv.Itoa(n)
}

// isNth reports whether a name is one of several.
func isNth(name, first string) bool {
	if name == first {
		return true
	}
	rest, ok := strings.CutPrefix(name, first+"/")
	n, err := strconv.Atoi(rest)
	return ok && err == nil && n > 0 && name == nth(first, n)
}

// parseRule returns the rule that a name begins with, and what comes after it, such
// as /match/0/HOST.
func parseRule(name string) (ruleKey, string, bool) {
	kind, rest, ok := strings.Cut(name, "/")
	if !ok || !kinds[ir.RouteKind(kind)] {
		return ruleKey{}, "", false
	}
	namespace, rest, _ := strings.Cut(rest, "/")
	route, rest, _ := strings.Cut(rest, "/")
	segment, rest, _ := strings.Cut(rest, "/")
	if segment != ruleSegment {
		return ruleKey{}, "", false
	}
	end := strings.IndexByte(rest, '/')
	if end < 0 {
		end = len(rest)
	}
	i, err := strconv.Atoi(rest[:end])
	if err != nil || i < l4Rule {
		return ruleKey{}, "", false
	}
	k := ruleKey{route: ir.RouteKey{Kind: ir.RouteKind(kind)}, rule: i}
	k.route.Namespace, k.route.Name = namespace, route
	if k.http() != (i >= 0) {
		return ruleKey{}, "", false
	}
	return k, rest[end:], true
}

// http reports whether the rule's requests are routed one by one.
func (k ruleKey) http() bool {
	return k.route.Kind == ir.KindHTTPRoute || k.route.Kind == ir.KindGRPCRoute
}

var kinds = map[ir.RouteKind]bool{
	ir.KindHTTPRoute: true,
	ir.KindGRPCRoute: true,
	ir.KindTCPRoute:  true,
	ir.KindUDPRoute:  true,
	ir.KindTLSRoute:  true,
}
