// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"strconv"
	"strings"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

const (
	// ruleSegment precedes a rule's index in names.
	ruleSegment = "rule"

	// backendSegment precedes a backend's index in the name of its cluster.
	backendSegment = "/backend/"

	// l4Rule is the index of the one cluster for all rules of an L4 route.
	l4Rule = -1

	// invalidCluster does not exist: its requests fail with the route's status code (Envoy
	// Gateway's internal/xds/translator/route.go).
	invalidCluster = "invalid-backend-cluster"
)

// A ruleKey identifies a rule as Envoy Gateway does: by its route, and by its index in the route
// (internal/gatewayapi/helpers.go).
type ruleKey struct {
	route ir.RouteKey
	rule  int
}

// cluster returns the name of Envoy Gateway's cluster for the rule: KIND/NAMESPACE/NAME/rule/INDEX.
func (k ruleKey) cluster() string {
	return strings.Join([]string{string(k.route.Kind), k.route.Namespace, k.route.Name, ruleSegment, strconv.Itoa(k.rule)}, "/")
}

// backend returns the name of the cluster of one backend of the rule.
func (k ruleKey) backend(i int) string { return k.cluster() + backendSegment + strconv.Itoa(i) }

// mirror returns the name of the cluster of the RequestMirror filter with that index.
func (k ruleKey) mirror(i int) string { return k.cluster() + "-mirror-" + strconv.Itoa(i) }

// nth returns the name of the nth of several clusters: the first has the name without a number.
func nth(name string, n int) string {
	if n == 0 {
		return name
	}
	return name + "/" + strconv.Itoa(n)
}

// isNth reports whether nth returns this name for some number.
func isNth(name, first string) bool {
	if name == first {
		return true
	}
	rest, ok := strings.CutPrefix(name, first+"/")
	n, err := strconv.Atoi(rest)
	return ok && err == nil && n > 0 && name == nth(first, n)
}

// parseRule returns the rule at the beginning of a name, and the rest of the name, such as
// /match/0/HOST.
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

// http reports whether Envoy routes each request of the rule separately.
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
