// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"maps"

	"k8s.io/apimachinery/pkg/types"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwapiv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
	"github.com/tailscale-gateway/tailscale-gateway/internal/refgrant"
)

// grantObjects are the ReferenceGrants. Other sections read them too.
type grantObjects struct {
	grants refgrant.Grants
}

func newGrantObjects() grantObjects { return grantObjects{grants: refgrant.Grants{}} }

// putGrant stores a ReferenceGrant.
func (all *objects) putGrant(in *input, p *pending) (bool, error) {
	o, ok := in.Object.(*gwapiv1beta1.ReferenceGrant)
	if !ok {
		return false, nil
	}
	put(all.grants, in.name, &o.Spec, in.Gone)
	p.markName(grantSection, types.NamespacedName{})
	return true, nil
}

// granted returns the references of routes that ReferenceGrants permit.
func (all *objects) granted() map[ir.Grant]bool {
	out := map[ir.Grant]bool{}
	for n, g := range all.grants {
		for _, f := range g.From {
			k, ok := ir.RouteKinds[string(f.Kind)]
			if !ok || f.Group != gwapiv1.GroupName {
				continue
			}
			for _, t := range g.To {
				to := parse.BackendKind(string(t.Group), string(t.Kind))
				if to == ir.BackendOther {
					continue
				}
				r := ir.Grant{Kind: k, Namespace: string(f.Namespace), To: to, Object: types.NamespacedName{Namespace: n.Namespace}}
				if t.Name != nil {
					r.Object.Name = string(*t.Name)
				}
				out[r] = true
			}
		}
	}
	return out
}

// recomputeGrants updates the permissions, on which all routes may depend.
func (s *Store) recomputeGrants(e *edit) {
	if len(e.marked(grantSection)) == 0 {
		return
	}
	old, now := maps.Collect(e.next.Grants.All()), s.objects.granted()
	if maps.Equal(old, now) {
		return
	}
	e.resum(grantSum(old), grantSum(now))
	e.next.Grants.Replace(e.next, now)
	for k := range e.next.Routes.All() {
		e.contributors[routeContributor(k)] = struct{}{}
	}
}

// grantSum returns the part of permissions in digests. It returns nil without permissions.
func grantSum(m map[ir.Grant]bool) any {
	if len(m) == 0 {
		return nil
	}
	return struct{ Granted map[ir.Grant]bool }{m}
}

// policiesOf returns the referrer for TailscaleRoutePolicies of a namespace.
func policiesOf(namespace string) refgrant.Referrer {
	return refgrant.Referrer{Group: gatewayv1alpha1.Group, Kind: gatewayv1alpha1.TailscaleRoutePolicyKind, Namespace: namespace}
}

// gatewaysOf returns the referrer for Gateways of a namespace.
func gatewaysOf(namespace string) refgrant.Referrer {
	return refgrant.Referrer{Group: gwapiv1.GroupName, Kind: parse.KindGateway, Namespace: namespace}
}
