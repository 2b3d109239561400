// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// A ruleName identifies a named rule of a route at a listener of a Gateway.
type ruleName struct {
	gateway  types.NamespacedName
	listener string
	route    ir.RouteKey
	section  string
}

// namedRoute returns the first route that Envoy Gateway made of a rule at the listener, or nil. The
// listener has the filters that this route needs; routes that the extension made for policies are
// not considered, nor is a route that Envoy would refuse.
func (e *policyApplier) namedRoute(gateway types.NamespacedName, listener string, rule *ir.NamedRule) *routev3.Route {
	if rule == nil {
		return nil
	}
	if e.rules == nil {
		e.rules = rulesOf(e.config)
	}
	n := ruleName{
		gateway: gateway, listener: listener, section: rule.Section,
		route: ir.RouteKey{Kind: rule.Route, NamespacedName: rule.NamespacedName},
	}
	r, ok := e.rules[n]
	if ok && !e.checked[r] && r.ValidateAll() != nil {
		delete(e.rules, n)
		return nil
	}
	e.checked[r] = true
	return r
}

// rulesOf returns the named rules of a route configuration, each with its first route.
func rulesOf(c *routev3.RouteConfiguration) map[ruleName]*routev3.Route {
	out := map[ruleName]*routev3.Route{}
	for _, v := range c.GetVirtualHosts() {
		n := ruleName{}
		n.gateway, n.listener = listenerOf(v)
		for _, r := range v.GetRoutes() {
			k, rest, ok := parseRule(r.GetName())
			if !ok || !k.http() || strings.Contains(rest, corsPreflight) {
				continue
			}
			_, n.section = resourceOf(r.GetMetadata())
			n.route = k.route
			if n.section != "" && out[n] == nil {
				out[n] = r
			}
		}
	}
	return out
}
