// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"slices"
	"strings"
	"sync"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

// corsPreflight is in the names of routes that Envoy Gateway adds beside a match, with a separate
// match: .../match/0/cors-preflight/HOST. A host may have this prefix too.
const corsPreflight = "/cors-preflight/"

// A use is a result of collect: it holds all parts of a message that belong to a rule which names a
// Tailscale backend or fails over.
type use struct {
	key ruleKey

	// route of the snapshot, and its rule that corresponds to the message's. rule is nil if there
	// is none. index is the rule's index there, which may differ from the one in the message.
	route *ir.Route
	rule  *ir.Rule
	index int

	// matches of the rule's HTTP routes in the message, each once.
	matches []ir.Match

	// hosts that the routes are for.
	hosts map[string]bool

	// policies that Envoy Gateway has applied to the rule's routes, according to metadata.
	policies []types.NamespacedName

	actions []action
	tcp     []*tcpFilter
	udp     []*udpFilter
}

// An action of a route.
type action struct {
	*routev3.RouteAction

	// safe reports that all of its requests may be retried.
	safe bool
}

// uses are the results of collect, in the order of their keys.
type uses struct {
	// ours name Tailscale backends. A rule that the snapshot lacks counts if its route has Tailscale
	// backends, because it may name one.
	ours []*use

	// services name only Kubernetes Services, which fail over to other clusters.
	services []*use
}

// collect returns the uses in a message.
func collect(s *ir.Snapshot, r Resources) uses {
	// Most messages have no route that fails over, and need no list of their Gateways.
	gateways := sync.OnceValue(func() []types.NamespacedName { return gatewaysOf(r) })
	g := &collector{snapshot: s, gateways: gateways, uses: map[ruleKey]*use{}}
	for _, c := range r.Routes {
		for _, v := range c.GetVirtualHosts() {
			for _, r := range v.GetRoutes() {
				g.route(v, r)
			}
		}
	}
	for _, l := range r.Listeners {
		g.listener(l)
	}
	out := uses{ours: make([]*use, 0, len(g.uses))}
	for _, u := range g.uses {
		u.findRule()
		switch {
		case u.rule == nil && !u.route.Ours():
		case u.rule == nil || u.rule.Ours():
			out.ours = append(out.ours, u)
		case g.failsOver(u.route):
			out.services = append(out.services, u)
		}
	}
	for _, us := range [][]*use{out.ours, out.services} {
		slices.SortFunc(us, func(a, b *use) int { return compareKeys(a.key, b.key) })
	}
	return out
}

type collector struct {
	snapshot *ir.Snapshot
	gateways func() []types.NamespacedName
	uses     map[ruleKey]*use
}

// failsOver reports whether a Gateway of the message lets a route fail over to other clusters.
func (g *collector) failsOver(r *ir.Route) bool {
	return slices.ContainsFunc(r.Failover, func(n types.NamespacedName) bool { return slices.Contains(g.gateways(), n) })
}

// use returns the use of a rule. Nil if the rule's route names no Tailscale backend and does not fail
// over.
func (g *collector) use(k ruleKey) *use {
	if u := g.uses[k]; u != nil {
		return u
	}
	route := g.snapshot.Route(k.route)
	if route == nil || !route.Ours() && !g.failsOver(route) {
		return nil
	}
	u := &use{key: k, route: route, hosts: map[string]bool{}}
	g.uses[k] = u
	return u
}

// findRule finds the snapshot's rule for the message's: the one at its index or, if rules were
// inserted or removed that one of the two does not have yet, the one with the same matches.
func (u *use) findRule() {
	u.index = max(u.key.rule, 0)
	if u.key.http() && !u.matchesRule(u.index) {
		u.index = slices.IndexFunc(u.route.Rules, func(r ir.Rule) bool { return sameMatches(u.matches, r.Matches) })
	}
	if u.index >= 0 && u.index < len(u.route.Rules) {
		u.rule = &u.route.Rules[u.index]
	}
}

// matchesRule reports whether the snapshot's rule at that index has the matches of the message's.
func (u *use) matchesRule(i int) bool {
	return i < len(u.route.Rules) && sameMatches(u.matches, u.route.Rules[i].Matches)
}

// sends returns the first cluster that the rule sends to and that fulfils the condition.
func (u *use) sends(match func(cluster string) bool) string {
	for _, a := range u.actions {
		if match(a.GetCluster()) {
			return a.GetCluster()
		}
		for _, c := range a.GetWeightedClusters().GetClusters() {
			if match(c.GetName()) {
				return c.GetName()
			}
		}
	}
	return ""
}

func (g *collector) route(v *routev3.VirtualHost, r *routev3.Route) {
	a := r.GetRoute()
	if a == nil {
		// A redirect, or a direct response of Envoy.
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
	u.policies = append(u.policies, policiesOf(r.GetMetadata())...)
	if strings.Contains(rest, corsPreflight) {
		return
	}
	m := matchOf(r.GetMatch())
	if !slices.ContainsFunc(u.matches, func(o ir.Match) bool { return equalMatch(o, m) }) {
		u.matches = append(u.matches, m)
	}
}

func (g *collector) listener(l *listenerv3.Listener) {
	for _, c := range l.GetFilterChains() {
		g.chain(c)
	}
	g.chain(l.GetDefaultFilterChain())
	for _, f := range l.GetListenerFilters() {
		g.udpFilter(f)
	}
}

func (g *collector) chain(c *listenerv3.FilterChain) {
	for _, f := range c.GetFilters() {
		g.tcpFilter(f)
	}
}

func equalMatch(a, b ir.Match) bool {
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
