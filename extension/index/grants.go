// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwapiv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
	"github.com/tailscale-gateway/tailscale-gateway/internal/refgrant"
)

// grantObjects are the ReferenceGrants, and what is known of them. Other sections read the grants too.
type grantObjects struct {
	grants refgrant.Grants

	// permissions are the permissions of each ReferenceGrant, and permitted counts the ReferenceGrants
	// with a permission.
	permissions map[types.NamespacedName][]ir.Grant
	permitted   map[ir.Grant]int
}

func newGrantObjects() grantObjects {
	return grantObjects{grants: refgrant.Grants{}, permissions: map[types.NamespacedName][]ir.Grant{}, permitted: map[ir.Grant]int{}}
}

// putGrant stores a ReferenceGrant.
func putGrant(all *objects, change *input, p *pending) (bool, error) {
	o, ok := change.Object.(*gwapiv1beta1.ReferenceGrant)
	if !ok {
		return false, nil
	}
	put(all.grants, change.name, &o.Spec, change.Deleted)
	p.markName(grantSection, change.name)
	return true, nil
}

// permissionsOf returns the references of routes to objects of a namespace that a ReferenceGrant
// permits, without duplicates. Nil permits nothing.
func permissionsOf(namespace string, g *gwapiv1beta1.ReferenceGrantSpec) []ir.Grant {
	if g == nil {
		return nil
	}
	all := map[ir.Grant]struct{}{}
	for _, f := range g.From {
		k, ok := ir.RouteKinds[string(f.Kind)]
		if !ok || f.Group != gwapiv1.GroupName {
			continue
		}
		for _, t := range g.To {
			kind := parse.BackendKind(string(t.Group), string(t.Kind))
			if kind == ir.BackendOther {
				continue
			}
			r := ir.Grant{Kind: k, Namespace: string(f.Namespace), To: kind, Object: types.NamespacedName{Namespace: namespace}}
			if t.Name != nil {
				r.Object.Name = string(*t.Name)
			}
			all[r] = struct{}{}
		}
	}
	return slices.Collect(maps.Keys(all))
}

// recomputeGrants updates the permissions, and marks the routes that name objects of their namespaces.
func recomputeGrants(s *Store, e *edit) {
	// changed are the permissions of changed ReferenceGrants, with whether there was another one before.
	changed := map[ir.Grant]bool{}
	count := func(g ir.Grant, delta int) {
		if _, ok := changed[g]; !ok {
			changed[g] = s.objects.permitted[g] > 0
		}
		add(s.objects.permitted, g, delta)
	}
	for c := range e.marked(grantSection) {
		permissions := permissionsOf(c.Namespace, s.objects.grants[c.NamespacedName])
		for _, g := range s.objects.permissions[c.NamespacedName] {
			count(g, -1)
		}
		for _, g := range permissions {
			count(g, 1)
		}
		put(s.objects.permissions, c.NamespacedName, permissions, len(permissions) == 0)
	}
	for g, permitted := range changed {
		permits := s.objects.permitted[g] > 0
		if permits == permitted {
			continue
		}
		e.resum(grantSum(g, permitted), grantSum(g, permits))
		e.next.Grants.Put(e.next, g, true, !permits)
		for k := range s.foreign[g.Object.Namespace] {
			c := routeEntry(k)
			e.entries[c], e.granted[c] = struct{}{}, struct{}{}
		}
	}
}

// grantSum returns the part of a permission in digests.
func grantSum(g ir.Grant, permits bool) any {
	if !permits {
		return nil
	}
	return struct{ Granted ir.Grant }{g}
}

// nameForeign records the other namespaces whose objects a route named before and names now.
func nameForeign(s *Store, k ir.RouteKey, old, current *ir.Route) {
	for n := range foreignNamespaces(old) {
		delete(s.foreign[n], k)
		if len(s.foreign[n]) == 0 {
			delete(s.foreign, n)
		}
	}
	for n := range foreignNamespaces(current) {
		if s.foreign[n] == nil {
			s.foreign[n] = map[ir.RouteKey]struct{}{}
		}
		s.foreign[n][k] = struct{}{}
	}
}

// foreignNamespaces returns the other namespaces whose objects a route names.
func foreignNamespaces(r *ir.Route) map[string]struct{} {
	if r == nil {
		return nil
	}
	out := map[string]struct{}{}
	for _, rule := range r.Rules {
		for _, b := range rule.Backends {
			if b.Namespace != r.Key.Namespace {
				out[b.Namespace] = struct{}{}
			}
		}
	}
	return out
}

// policiesOf returns the referrer for TailscaleRoutePolicies of a namespace.
func policiesOf(namespace string) refgrant.Referrer {
	return refgrant.Referrer{Group: gatewayv1alpha1.Group, Kind: gatewayv1alpha1.TailscaleRoutePolicyKind, Namespace: namespace}
}

// gatewaysOf returns the referrer for Gateways of a namespace.
func gatewaysOf(namespace string) refgrant.Referrer {
	return refgrant.Referrer{Group: gwapiv1.GroupName, Kind: parse.KindGateway, Namespace: namespace}
}
