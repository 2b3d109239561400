// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// kindIdentity is the kind of what a Gateway's digest has for its listeners that are
// told by headers who asks.
const kindIdentity ir.RouteKind = "identity"

// An identity is what TailscaleGateways of a namespace want: the names of listeners that
// are told by headers who asks.
type identity struct {
	namespace string
	listeners []string
}

// identified are a Gateway's listeners that a TailscaleGateway wants to be told by
// headers who asks, as far as they can be: those of HTTP. Nil means that none is
// wanted, and an empty list that what is wanted is not there, or wanted by nobody who
// may: such a listener believes whoever reaches it.
func (w *world) identified(gateway types.NamespacedName) []ir.IdentityListener {
	var out []ir.IdentityListener
	for _, of := range w.identities.sorted(gateway) {
		if out == nil {
			out = []ir.IdentityListener{}
		}
		if !w.grants.PermitGateway(of.namespace, gateway) {
			continue
		}
		for _, n := range of.listeners {
			l := ir.IdentityListener{Name: n}
			if g := w.abouts[gateway]; g != nil {
				l.Port = g.Plain[n]
			}
			if l.Port != 0 && !slices.Contains(out, l) {
				out = append(out, l)
			}
		}
	}
	slices.SortFunc(out, func(a, b ir.IdentityListener) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// putTailscaleGateway keeps which listeners are told by headers who asks.
func (w *world) putTailscaleGateway(o *gatewayv1alpha1.TailscaleGateway, n types.NamespacedName, gone bool, d *dirty) {
	if old, ok := w.joined[n]; ok {
		w.identities.unset(old, n)
		d.identities[old] = struct{}{}
		delete(w.joined, n)
	}
	var names []string
	for _, t := range o.Spec.Tailnets {
		for _, l := range t.Listeners {
			if l.Identity == gatewayv1alpha1.ClientIdentityHeaders {
				names = append(names, l.Name)
			}
		}
	}
	if gone || len(names) == 0 {
		return
	}
	g := types.NamespacedName{Namespace: o.Spec.GatewayRef.Namespace, Name: o.Spec.GatewayRef.Name}
	if g.Namespace == "" {
		g.Namespace = n.Namespace
	}
	w.joined[n] = g
	w.identities.set(g, n, identity{namespace: n.Namespace, listeners: names})
	d.identities[g] = struct{}{}
}

// advanceIdentity takes over which listeners of a Gateway are told by headers who asks,
// if it is served.
func (s *Store) advanceIdentity(c *change, gateway types.NamespacedName) {
	old, now := c.next.IdentityListeners.Get(gateway), s.world.identified(gateway)
	if s.serves != nil && !s.serves(gateway) {
		now = nil
	}
	if (old == nil) == (now == nil) && slices.Equal(old, now) {
		return
	}
	c.digest(identitySum(gateway, old), identitySum(gateway, now))
	c.identities = append(c.identities, gateway)
	c.next.IdentityListeners.Put(c.next, gateway, now, now == nil)
}

func identityKey(gateway types.NamespacedName) ir.RouteKey {
	return ir.RouteKey{Kind: kindIdentity, NamespacedName: gateway}
}

// identitySum is what a Gateway's listeners are in a digest.
func identitySum(gateway types.NamespacedName, ls []ir.IdentityListener) any {
	if ls == nil {
		return nil
	}
	return struct {
		Identified types.NamespacedName
		Listeners  []ir.IdentityListener
	}{gateway, ls}
}

// identityPart is what they add to the digest of the Gateway.
func identityPart(c *change, gateway types.NamespacedName) part {
	ls := c.next.IdentityListeners.Get(gateway)
	if ls == nil {
		return part{}
	}
	return part{gateways: []types.NamespacedName{gateway}, sum: ir.Sum(identitySum(gateway, ls))}
}
