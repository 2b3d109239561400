// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"slices"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

// corsPreflight is in names of routes that Envoy Gateway adds beside a match, with
// a match of their own.
const corsPreflight = "/cors-preflight"

// A use is all that a message does with a rule which names one of ours.
type use struct {
	key  ruleKey
	rule *index.Rule

	// matches of the rule's HTTP routes in the message, each once.
	matches []index.Match

	// hosts that the routes are for.
	hosts map[string]bool

	actions []action
	tcp     []*tcpFilter
	udp     []*udpFilter
}

// An action of a route.
type action struct {
	*routev3.RouteAction

	// safe tells that all of its requests may be repeated.
	safe bool
}

// uses of our kinds in a message, in the order of their keys.
func uses(s *index.Snapshot, listeners []*listenerv3.Listener, routes []*routev3.RouteConfiguration) []*use {
	g := &gatherer{snapshot: s, uses: map[ruleKey]*use{}}
	for _, c := range routes {
		for _, v := range c.GetVirtualHosts() {
			for _, r := range v.GetRoutes() {
				g.route(v, r)
			}
		}
	}
	for _, l := range listeners {
		g.listener(l)
	}
	out := make([]*use, 0, len(g.uses))
	for _, u := range g.uses {
		out = append(out, u)
	}
	slices.SortFunc(out, func(a, b *use) int { return compareKeys(a.key, b.key) })
	return out
}

type gatherer struct {
	snapshot *index.Snapshot
	uses     map[ruleKey]*use
}

// use of the rule. Nil if nothing of ours is named by it.
func (g *gatherer) use(k ruleKey) *use {
	if u := g.uses[k]; u != nil {
		return u
	}
	rule := k.in(g.snapshot)
	if rule == nil || !rule.Ours() {
		return nil
	}
	u := &use{key: k, rule: rule, hosts: map[string]bool{}}
	g.uses[k] = u
	return u
}

func (g *gatherer) route(v *routev3.VirtualHost, r *routev3.Route) {
	a := r.GetRoute()
	if a == nil {
		// A redirect, or an answer of Envoy's own.
		return
	}
	k, rest, ok := parseRule(r.GetName())
	if !ok || !k.http() {
		return
	}
	u := g.use(k)
	if u == nil {
		return
	}
	u.actions = append(u.actions, action{RouteAction: a, safe: xds.Safe(r.GetMatch())})
	for _, d := range v.GetDomains() {
		u.hosts[d] = true
	}
	if strings.Contains(rest, corsPreflight) {
		return
	}
	m := matchOf(r.GetMatch())
	if !slices.ContainsFunc(u.matches, func(o index.Match) bool { return equalMatch(o, m) }) {
		u.matches = append(u.matches, m)
	}
}

func (g *gatherer) listener(l *listenerv3.Listener) {
	for _, c := range l.GetFilterChains() {
		g.chain(c)
	}
	g.chain(l.GetDefaultFilterChain())
	for _, f := range l.GetListenerFilters() {
		g.udpFilter(f)
	}
}

func (g *gatherer) chain(c *listenerv3.FilterChain) {
	for _, f := range c.GetFilters() {
		g.tcpFilter(f)
	}
}

func equalMatch(a, b index.Match) bool {
	return a.PathType == b.PathType && a.Path == b.Path && a.Method == b.Method &&
		slices.Equal(a.Headers, b.Headers) && slices.Equal(a.Query, b.Query)
}

func compareKeys(a, b ruleKey) int {
	if c := strings.Compare(string(a.route.Kind), string(b.route.Kind)); c != 0 {
		return c
	}
	if c := strings.Compare(a.route.Namespace, b.route.Namespace); c != 0 {
		return c
	}
	if c := strings.Compare(a.route.Name, b.route.Name); c != 0 {
		return c
	}
	return a.rule - b.rule
}
