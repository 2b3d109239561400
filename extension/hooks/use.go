// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"slices"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

// corsPreflight is in names of routes that Envoy Gateway adds beside a match, with
// a match of their own: .../match/0/cors-preflight/HOST. A host may begin so, too.
const corsPreflight = "/cors-preflight/"

// A use is all that a message does with a rule which names one of ours.
type use struct {
	key ruleKey

	// route of the snapshot, and its rule that is meant. Nil when it has none such. The
	// rule's index there, at, may be another than in the message.
	route *ir.Route
	rule  *ir.Rule
	at    int

	// matches of the rule's HTTP routes in the message, each once.
	matches []ir.Match

	// hosts that the routes are for.
	hosts map[string]bool

	// policies that Envoy Gateway says it has applied to the rule's routes.
	policies []types.NamespacedName

	actions []action
	tcp     []*tcpFilter
	udp     []*udpFilter
}

// An action of a route.
type action struct {
	*routev3.RouteAction

	// safe reports that all of its requests may be repeated.
	safe bool
}

// uses of our kinds in a message, in the order of their keys. A rule of a route with ours
// which the snapshot does not have counts, for it may name one of ours.
func uses(s *ir.Snapshot, listeners []*listenerv3.Listener, routes []*routev3.RouteConfiguration) []*use {
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
		u.find()
		if u.rule == nil || u.rule.Ours() {
			out = append(out, u)
		}
	}
	slices.SortFunc(out, func(a, b *use) int { return compareKeys(a.key, b.key) })
	return out
}

type gatherer struct {
	snapshot *ir.Snapshot
	uses     map[ruleKey]*use
}

// use of the rule. Nil if nothing of ours is named by its route.
func (g *gatherer) use(k ruleKey) *use {
	if u := g.uses[k]; u != nil {
		return u
	}
	route := g.snapshot.Route(k.route)
	if route == nil || !slices.ContainsFunc(route.Rules, ir.Rule.Ours) {
		return nil
	}
	u := &use{key: k, route: route, hosts: map[string]bool{}}
	g.uses[k] = u
	return u
}

// find the rule that the message means: the one at its index, or, where rules were
// inserted or taken away that one of the two has not heard of, the one with its matches.
func (u *use) find() {
	u.at = max(u.key.rule, 0)
	if u.key.http() && !u.means(u.at) {
		u.at = slices.IndexFunc(u.route.Rules, func(r ir.Rule) bool { return sameMatches(u.matches, r.Matches) })
	}
	if u.at >= 0 && u.at < len(u.route.Rules) {
		u.rule = &u.route.Rules[u.at]
	}
}

// means reports whether the message means the rule of the snapshot with that index.
func (u *use) means(i int) bool {
	return i < len(u.route.Rules) && sameMatches(u.matches, u.route.Rules[i].Matches)
}

// sends returns the first cluster that the rule sends to and that is as asked for.
func (u *use) sends(is func(cluster string) bool) string {
	for _, a := range u.actions {
		if is(a.GetCluster()) {
			return a.GetCluster()
		}
		for _, c := range a.GetWeightedClusters().GetClusters() {
			if is(c.GetName()) {
				return c.GetName()
			}
		}
	}
	return ""
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
	u.policies = append(u.policies, policiesOf(r.GetMetadata())...)
	if strings.Contains(rest, corsPreflight) {
		return
	}
	m := matchOf(r.GetMatch())
	if !slices.ContainsFunc(u.matches, func(o ir.Match) bool { return equalMatch(o, m) }) {
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
