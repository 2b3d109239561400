// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwapiv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// identityObjects are the identity listeners that TailscaleGateways ask for, by Gateway, and
// the Gateways of those TailscaleGateways.
type identityObjects struct {
	requestedListeners group[requestedListeners]
	identityGateway    map[types.NamespacedName]types.NamespacedName
}

func newIdentityObjects() identityObjects {
	return identityObjects{requestedListeners: group[requestedListeners]{}, identityGateway: map[types.NamespacedName]types.NamespacedName{}}
}

// requestedListeners holds the names of the identity listeners that TailscaleGateways of a namespace
// ask for.
type requestedListeners struct {
	namespace string
	listeners []string
}

// putIdentity stores the identity listeners of a TailscaleGateway, and marks those of a
// Gateway or those that a ReferenceGrant may permit.
func putIdentity(all *objects, change *input, p *pending) (bool, error) {
	switch o := change.Object.(type) {
	case *gwapiv1beta1.ReferenceGrant:
		for n, g := range all.identityGateway {
			if n.Namespace != g.Namespace {
				p.markName(identitySection, g)
			}
		}
	case *gwapiv1.Gateway:
		p.markName(identitySection, change.name)
	case *gatewayv1alpha1.TailscaleGateway:
		putTailscaleGateway(all, o, change, p)
	default:
		return false, nil
	}
	return true, nil
}

func putTailscaleGateway(all *objects, o *gatewayv1alpha1.TailscaleGateway, change *input, p *pending) {
	if old, ok := all.identityGateway[change.name]; ok {
		all.requestedListeners.unset(old, change.name)
		p.markName(identitySection, old)
		delete(all.identityGateway, change.name)
	}
	var names []string
	refused := parse.RefusedTailnets(o)
	for _, t := range o.Spec.Tailnets {
		// No proxy of such a tailnet reaches the Gateway, so nothing of it may change the Gateway.
		if refused[t.Name] {
			continue
		}
		for _, l := range t.Listeners {
			if l.Identity == gatewayv1alpha1.ClientIdentityHeaders {
				names = append(names, l.Name)
			}
		}
	}
	if change.Deleted || len(names) == 0 {
		return
	}
	g := o.GatewayName()
	if g.Name == "" {
		return
	}
	all.identityGateway[change.name] = g
	all.requestedListeners.set(g, change.name, requestedListeners{namespace: change.name.Namespace, listeners: names})
	p.markName(identitySection, g)
}

// serveIdentities marks all Gateways with identity listeners.
func serveIdentities(all *objects, p *pending) {
	for n := range all.requestedListeners {
		p.markName(identitySection, n)
	}
}

// identityListeners returns the HTTP listeners of a Gateway that a TailscaleGateway requests
// as identity listeners. It returns nil if no TailscaleGateway that may share the Gateway
// requests any, and an empty list if the requested listeners do not exist: an identity listener
// trusts every client that reaches it. A TailscaleGateway without permission changes nothing at a
// Gateway of another namespace, and nothing of it reaches the Gateway.
func (all *objects) identityListeners(gateway types.NamespacedName) []ir.IdentityListener {
	var out []ir.IdentityListener
	for _, request := range all.requestedListeners.sorted(gateway) {
		if !all.grants.PermitGateway(request.namespace, gateway) {
			continue
		}
		if out == nil {
			out = []ir.IdentityListener{}
		}
		for _, n := range request.listeners {
			l := ir.IdentityListener{Name: n}
			if g := all.gatewayInfo[gateway]; g != nil {
				l.Port = g.HTTPPorts[n]
			}
			if l.Port != 0 && !slices.Contains(out, l) {
				out = append(out, l)
			}
		}
	}
	slices.SortFunc(out, func(a, b ir.IdentityListener) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// recomputeIdentities updates the identity listeners of the marked Gateways.
func recomputeIdentities(s *Store, e *edit) {
	for c := range e.marked(identitySection) {
		gateway := c.NamespacedName
		old, current := e.next.IdentityListeners.Get(gateway), s.objects.identityListeners(gateway)
		if !s.objects.serves(gateway) {
			current = nil
		}
		if (old == nil) == (current == nil) && slices.Equal(old, current) {
			continue
		}
		e.digest(c, identitySum(gateway, old), identitySum(gateway, current))
		e.next.IdentityListeners.Put(e.next, gateway, current, current == nil)
	}
}

// identitySum returns the part of identity listeners in digests.
func identitySum(gateway types.NamespacedName, ls []ir.IdentityListener) any {
	if ls == nil {
		return nil
	}
	return struct {
		Identified types.NamespacedName
		Listeners  []ir.IdentityListener
	}{gateway, ls}
}

// digestIdentity returns the part of a Gateway's identity listeners.
func digestIdentity(_ *Store, e *edit, c entry) digestPart {
	return digestPartOf(c.NamespacedName, identitySum(c.NamespacedName, e.next.IdentityListeners.Get(c.NamespacedName)))
}
