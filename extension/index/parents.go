// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// gateways returns the Gateways that a route with these parents attaches to, sorted.
func (all *objects) gateways(parents []parse.Parent) []types.NamespacedName {
	var out []types.NamespacedName
	for _, p := range parents {
		if n, ok := all.parentGateway(p); ok && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, ir.CompareNames)
	return out
}

// parentGateway returns the Gateway of a parent, and false for a ListenerSet that does not exist.
func (all *objects) parentGateway(p parse.Parent) (types.NamespacedName, bool) {
	if !p.ListenerSet {
		return p.NamespacedName, true
	}
	n, ok := all.listenerSets[p.NamespacedName]
	return n, ok
}

// attaches reports whether a route with these parents attaches to a Gateway.
func (all *objects) attaches(parents []parse.Parent, gateway types.NamespacedName) bool {
	return slices.ContainsFunc(parents, func(p parse.Parent) bool {
		n, ok := all.parentGateway(p)
		return ok && n == gateway
	})
}

// servedRoute returns a route and its served Gateways. It returns nil if none of its
// Gateways is served. A route without a known Gateway may attach to any.
func (all *objects) servedRoute(k ir.RouteKey) (*parse.RouteObject, []types.NamespacedName) {
	p := all.routes[k]
	if p == nil {
		p = failoverRoute(all, k)
	}
	if p == nil {
		return nil, nil
	}
	gateways := all.gateways(p.Parents)
	if len(gateways) == 0 {
		return p, gateways
	}
	if gateways = slices.DeleteFunc(gateways, func(n types.NamespacedName) bool { return !all.serves(n) }); len(gateways) == 0 {
		return nil, nil
	}
	return p, gateways
}
