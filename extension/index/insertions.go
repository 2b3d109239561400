// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/limits"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// Policies insert routes into Envoy's configuration: for each match of their rules one before each
// route that Envoy Gateway makes. So one policy and one route can make a configuration that neither
// Envoy Gateway nor an Envoy can hold. The insertions estimate the bytes of each HTTPRoute's and
// GRPCRoute's inserted routes, and refuse routes beyond the limits: package hooks denies all of their
// requests that policies apply to. The decisions depend on the objects alone, so that all replicas
// decide alike, and the bytes count for the namespace of the route, not of the policy.

// Estimates of bytes in Envoy's configuration. A deny has some 200 bytes, and a route of Envoy Gateway
// some 800.
const (
	insertedRoute  = 512
	insertedClient = 48
)

// insertions are the estimates, and the refused routes.
type insertions struct {
	// policies are the bytes that a policy's rules add to each route, and costs the same by target.
	policies map[types.NamespacedName]policyCost
	costs    map[ir.PolicyTarget]int

	routes     map[ir.RouteKey]routeCost
	namespaces map[string]*namespaceCost
	gateways   map[types.NamespacedName]int

	// large are the routes beyond the limit of a route.
	large map[ir.RouteKey]struct{}

	// dirty are the routes whose estimates may have changed, and dirtyParents the Gateways and
	// ListenerSets, without a section, of which all routes' may have.
	dirty        map[ir.RouteKey]struct{}
	dirtyParents map[parse.Parent]struct{}

	// refused are the refused routes with the reasons.
	refused map[ir.RouteKey]string

	// affected are the policies whose refused routes may have changed.
	affected map[types.NamespacedName]struct{}
}

// A policyCost is what a policy adds to each route of its targets.
type policyCost struct {
	targets []ir.PolicyTarget
	bytes   int
}

// A namespaceCost is the estimate of a namespace's routes, and which these are.
type namespaceCost struct {
	bytes  int
	routes map[ir.RouteKey]struct{}
}

// A routeCost is the estimate of a route, in all and by Gateway.
type routeCost struct {
	created  time.Time
	bytes    int
	gateways map[types.NamespacedName]int
}

func newInsertions() *insertions {
	return &insertions{
		policies: map[types.NamespacedName]policyCost{}, costs: map[ir.PolicyTarget]int{},
		routes: map[ir.RouteKey]routeCost{}, namespaces: map[string]*namespaceCost{}, gateways: map[types.NamespacedName]int{},
		large: map[ir.RouteKey]struct{}{}, dirty: map[ir.RouteKey]struct{}{}, dirtyParents: map[parse.Parent]struct{}{}, refused: map[ir.RouteKey]string{}, affected: map[types.NamespacedName]struct{}{},
	}
}

// setPolicy replaces a policy. Nil means that it is gone.
func (ins *insertions) setPolicy(n types.NamespacedName, p *ir.RoutePolicy) {
	current := policyCost{}
	if p != nil {
		for _, t := range p.Targets {
			current.targets = append(current.targets, t.PolicyTarget)
		}
		for _, r := range p.Rules {
			current.bytes += ruleCost(r)
		}
	}
	previous := ins.policies[n]
	if previous.bytes == current.bytes && slices.Equal(previous.targets, current.targets) {
		return
	}
	ins.affected[n] = struct{}{}
	ins.addPolicy(previous, -1)
	ins.addPolicy(current, 1)
	put(ins.policies, n, current, current.bytes == 0)
}

// addPolicy adds the bytes of a policy to its targets, or removes them.
func (ins *insertions) addPolicy(c policyCost, sign int) {
	for _, t := range c.targets {
		if ins.costs[t] += sign * c.bytes; ins.costs[t] == 0 {
			delete(ins.costs, t)
		}
		if t.Route == "" {
			ins.dirtyParents[parse.Parent{NamespacedName: t.NamespacedName}] = struct{}{}
			continue
		}
		ins.dirty[t.RouteKey()] = struct{}{}
	}
}

// ruleCost estimates the bytes that a rule adds to each route.
func ruleCost(r *ir.PolicyRule) int {
	if r.Problem != "" {
		return 0
	}
	action := insertedRoute
	for _, c := range []ir.HeaderChange{r.Request, r.Response} {
		for _, h := range slices.Concat(c.Set, c.Add) {
			action += len(h.Name) + len(h.Value)
		}
		for _, n := range c.Remove {
			action += len(n)
		}
	}
	out := 0
	for _, m := range parse.Alternatives(r) {
		out += action + len(m.Path) + len(m.Method) + insertedClient*len(m.Clients)
		for _, h := range m.Headers {
			out += len(h)
		}
	}
	if len(r.Matches) == 0 {
		return action
	}
	return out
}

// cost estimates the bytes of a route's inserted routes. Envoy Gateway makes a route for each match,
// hostname and listener; some hostnames are not those of the listener, and none are known of a
// ListenerSet. Package hooks measures what is inserted.
func (all *objects) cost(k ir.RouteKey, s *site) routeCost {
	ins := all.insertions
	out := routeCost{created: s.created, gateways: map[types.NamespacedName]int{}}
	at := ir.PolicyTarget{Route: k.Kind, NamespacedName: k.NamespacedName}
	own, count := 0, 0
	for _, r := range s.ruleMatches {
		n := r.matches * s.hosts
		count += n
		own += n * ins.costs[at]
		if r.name != "" {
			named := at
			named.Section = r.name
			own += n * ins.costs[named]
		}
	}
	for _, p := range s.parents {
		gateway, listeners := p.NamespacedName, []string{p.Section}
		g := all.gatewayInfo[gateway]
		switch {
		case p.ListenerSet:
			gateway, listeners = all.listenerSets[gateway], []string{""}
		case p.Section == "" && g != nil:
			listeners = g.Sections
		}
		whole := ir.PolicyTarget{NamespacedName: gateway}
		for _, l := range listeners {
			bytes := own + count*ins.costs[whole]
			if l != "" {
				bytes += count * ins.costs[ir.PolicyTarget{NamespacedName: gateway, Section: l}]
			}
			if bytes > 0 {
				out.gateways[gateway] += bytes
				out.bytes += bytes
			}
		}
	}
	return out
}

// settleInsertions updates the estimates and the refused routes, and records which policies this affects.
func settleInsertions(all *objects) {
	ins := all.insertions
	if len(ins.costs)+len(ins.routes) == 0 {
		clear(ins.dirty)
		clear(ins.dirtyParents)
		return
	}
	if len(ins.dirtyParents) > 0 {
		for k, site := range all.sites {
			if slices.ContainsFunc(site.parents, all.isDirty) {
				ins.dirty[k] = struct{}{}
			}
		}
	}
	clear(ins.dirtyParents)
	if len(ins.dirty) == 0 {
		return
	}
	previous, costs := ins.refused, map[ir.RouteKey]routeCost{}
	for k := range ins.dirty {
		cost := routeCost{}
		if s := all.sites[k]; s != nil {
			cost = all.cost(k, s)
		}
		costs[k] = ins.routes[k]
		ins.setRoute(k, cost)
	}
	ins.refused = ins.refuse()
	affect := func(k ir.RouteKey) {
		maps.Copy(ins.affected, all.policyDependents[ir.PolicyTarget{Route: k.Kind, NamespacedName: k.NamespacedName}])
		for _, cost := range []routeCost{costs[k], ins.routes[k]} {
			for g := range cost.gateways {
				maps.Copy(ins.affected, all.policyDependents[ir.PolicyTarget{NamespacedName: g}])
			}
		}
	}
	for _, refused := range []map[ir.RouteKey]string{previous, ins.refused} {
		for k := range refused {
			// A dirty route may be at other Gateways than before.
			if _, dirty := ins.dirty[k]; dirty || previous[k] != ins.refused[k] {
				affect(k)
			}
		}
	}
	clear(ins.dirty)
}

// isDirty reports whether a parent of a route, or its Gateway, is among dirtyParents.
func (all *objects) isDirty(p parse.Parent) bool {
	p.Section = ""
	if _, dirty := all.insertions.dirtyParents[p]; dirty {
		return true
	}
	gateway, ok := all.parentGateway(p)
	_, dirty := all.insertions.dirtyParents[parse.Parent{NamespacedName: gateway}]
	return ok && dirty
}

// setRoute replaces the estimate of a route.
func (ins *insertions) setRoute(k ir.RouteKey, cost routeCost) {
	previous := ins.routes[k]
	n := ins.namespaces[k.Namespace]
	if n == nil {
		n = &namespaceCost{routes: map[ir.RouteKey]struct{}{}}
		ins.namespaces[k.Namespace] = n
	}
	n.bytes += cost.bytes - previous.bytes
	if put(n.routes, k, struct{}{}, cost.bytes == 0); len(n.routes) == 0 {
		delete(ins.namespaces, k.Namespace)
	}
	for g, n := range previous.gateways {
		add(ins.gateways, g, -n)
	}
	for g, n := range cost.gateways {
		add(ins.gateways, g, n)
	}
	put(ins.routes, k, cost, cost.bytes == 0)
	put(ins.large, k, struct{}{}, cost.bytes <= limits.RouteInsertions)
}

// add adds to a sum, and removes one that is zero.
func add[K comparable](sums map[K]int, k K, n int) {
	if sums[k] += n; sums[k] == 0 {
		delete(sums, k)
	}
}

// refuse returns the routes beyond a limit with the reasons.
func (ins *insertions) refuse() map[ir.RouteKey]string {
	out := map[ir.RouteKey]string{}
	for k := range ins.large {
		out[k] = fmt.Sprintf("policies insert more than %s before its routes", limits.Bytes(limits.RouteInsertions))
	}
	for n, cost := range ins.namespaces {
		if cost.bytes > limits.NamespaceInsertions {
			ins.refuseNewest(out, ins.routesOf(n), limits.NamespaceInsertions, func(c routeCost) int { return c.bytes },
				fmt.Sprintf("policies insert more than %s before the routes of namespace %s, and it is among the newest", limits.Bytes(limits.NamespaceInsertions), n))
		}
	}
	for _, g := range slices.SortedFunc(maps.Keys(ins.gateways), ir.CompareNames) {
		if ins.gateways[g] > limits.GatewayInsertions {
			ins.refuseAt(out, g)
		}
	}
	return out
}

// routesOf returns the routes of a namespace, the oldest first.
func (ins *insertions) routesOf(namespace string) []ir.RouteKey {
	return slices.SortedFunc(maps.Keys(ins.namespaces[namespace].routes), func(a, b ir.RouteKey) int {
		return cmp.Or(ins.routes[a].created.Compare(ins.routes[b].created), cmp.Compare(a.String(), b.String()), cmp.Compare(a.Kind, b.Kind))
	})
}

// refuseNewest refuses those routes that exceed a limit together with the ones before them.
func (ins *insertions) refuseNewest(out map[ir.RouteKey]string, routes []ir.RouteKey, limit int, bytesOf func(routeCost) int, reason string) {
	sum := 0
	for _, k := range routes {
		if out[k] != "" {
			continue
		}
		n := bytesOf(ins.routes[k])
		if n > 0 && sum+n > limit {
			out[k] = reason
			continue
		}
		sum += n
	}
}

// refuseAt refuses routes of a Gateway, of the namespaces with the most.
func (ins *insertions) refuseAt(out map[ir.RouteKey]string, g types.NamespacedName) {
	at := func(c routeCost) int { return c.gateways[g] }
	sums, total := map[string]int{}, 0
	for k, c := range ins.routes {
		if out[k] == "" {
			sums[k.Namespace] += at(c)
			total += at(c)
		}
	}
	if total <= limits.GatewayInsertions {
		return
	}
	share := shareOf(slices.Sorted(maps.Values(sums)), limits.GatewayInsertions)
	for n, sum := range sums {
		if sum > share {
			ins.refuseNewest(out, ins.routesOf(n), share, at, fmt.Sprintf("policies insert more than %s before the routes of Gateway %s, namespace %s has the most of it, and it is among the newest there", limits.Bytes(limits.GatewayInsertions), g, n))
		}
	}
}

// shareOf returns the greatest part that each of the sums may have of a limit, so that those below
// it keep theirs. The sums are sorted.
func shareOf(sums []int, limit int) int {
	for i, n := range sums {
		if share := limit / (len(sums) - i); n > share {
			return share
		}
		limit -= n
	}
	return limit
}

// refuseInsertions sets the refused routes of each policy that applies to them.
func refuseInsertions(s *Store, e *edit) {
	settleInsertions(s.objects)
	ins := s.objects.insertions
	if len(ins.affected) == 0 {
		return
	}
	byGateway := map[types.NamespacedName][]ir.RouteKey{}
	for k := range ins.refused {
		for g := range ins.routes[k].gateways {
			byGateway[g] = append(byGateway[g], k)
		}
	}
	for n := range ins.affected {
		refused := map[ir.RouteKey]string{}
		for _, t := range ins.policies[n].targets {
			routes := []ir.RouteKey{t.RouteKey()}
			if t.Route == "" {
				routes = byGateway[t.NamespacedName]
			}
			for _, k := range routes {
				if reason := ins.refused[k]; reason != "" {
					refused[k] = reason
				}
			}
		}
		reportRefused(e, n, refused)
	}
	clear(ins.affected)
}

// reportRefused sets the refused routes of a policy.
func reportRefused(e *edit, n types.NamespacedName, refused map[ir.RouteKey]string) {
	old := e.next.Policies.Get(n)
	if old == nil || maps.Equal(old.Refused, refused) {
		return
	}
	updated := *old
	if updated.Refused = refused; len(refused) == 0 {
		updated.Refused = nil
	}
	e.digest(entry{section: policySection, NamespacedName: n}, refusedSum(old), refusedSum(&updated))
	e.policies = true
	e.next.Policies.Put(e.next, n, &updated, false)
}
