// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"reflect"

	"k8s.io/apimachinery/pkg/types"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// gatewayObjects are the Gateways. Other sections read them too.
type gatewayObjects struct {
	gatewayInfo map[types.NamespacedName]*ir.Gateway
}

func newGatewayObjects() gatewayObjects {
	return gatewayObjects{gatewayInfo: map[types.NamespacedName]*ir.Gateway{}}
}

// putGateway stores a Gateway.
func putGateway(all *objects, change *input, p *pending) (bool, error) {
	o, ok := change.Object.(*gwapiv1.Gateway)
	if !ok {
		return false, nil
	}
	previous := all.admits(change.name, "")
	put(all.gatewayInfo, change.name, parse.ParseGateway(o), change.Deleted)
	if all.admits(change.name, "") != previous {
		markAdmitted(all, change.name, p)
	}
	p.markName(gatewaySection, change.name)
	return true, nil
}

// admits reports whether objects of a namespace may change what a Gateway serves, and so its
// revision, which is an object of the Gateway's namespace: those of this namespace, and others if
// the Gateway exists and admits their routes.
func (all *objects) admits(gateway types.NamespacedName, namespace string) bool {
	g := all.gatewayInfo[gateway]
	return gateway.Namespace == namespace || g != nil && g.AdmitsOthers
}

// admitting returns the Gateways that admit objects of a namespace.
func (all *objects) admitting(gateways []types.NamespacedName, namespace string) []types.NamespacedName {
	var out []types.NamespacedName
	for _, g := range gateways {
		if all.admits(g, namespace) {
			out = append(out, g)
		}
	}
	return out
}

// markAdmitted marks the routes of a Gateway, and their policies.
func markAdmitted(all *objects, gateway types.NamespacedName, p *pending) {
	for k, r := range all.routes {
		if all.attaches(r.Parents, gateway) {
			p.mark(routeEntry(k))
		}
	}
	markServiceRoutes(all, p, func(parents []parse.Parent) bool { return all.attaches(parents, gateway) })
	for t := range all.policyDependents {
		if site := all.sites[t.RouteKey()]; site != nil && all.attaches(site.parents, gateway) {
			markDependents(all, t, p)
		}
	}
}

// recomputeGateways updates the marked Gateways.
func recomputeGateways(s *Store, e *edit) {
	for c := range e.marked(gatewaySection) {
		current := s.objects.gatewayInfo[c.NamespacedName]
		if !reflect.DeepEqual(e.next.Gateways.Get(c.NamespacedName), current) {
			e.next.Gateways.Put(e.next, c.NamespacedName, current, current == nil)
		}
	}
}
