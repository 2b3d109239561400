// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
)

// A NamedRule is a rule of a route that handles what a policy's rule matches. Where it is
// not there nothing else does.
type NamedRule struct {
	PolicyTarget

	// Problem says why it cannot, for people. Of what Envoy Gateway makes of the route
	// nothing is known here.
	Problem string
}

// String is KIND NAMESPACE/NAME.
func (n *NamedRule) String() string {
	for kind, k := range routeKinds {
		if k == n.Route {
			return kind + " " + n.NamespacedName.String()
		}
	}
	return n.NamespacedName.String()
}

func parseNamedRule(namespace string, in *gatewayv1alpha1.RoutePolicyRouteRule) (*NamedRule, error) {
	n := &NamedRule{PolicyTarget: PolicyTarget{
		Route: KindHTTPRoute, NamespacedName: types.NamespacedName{Namespace: namespace, Name: string(in.Name)}, Section: string(in.SectionName),
	}}
	if in.Kind != "" {
		n.Route = routeKinds[string(in.Kind)]
	}
	if n.Section == "" || n.Route != KindHTTPRoute && n.Route != KindGRPCRoute {
		return nil, errors.Errorf("%s %s has no rule %q", in.Kind, in.Name, in.SectionName)
	}
	return n, nil
}

// lookUp the rules that a policy's rules name.
func (w *world) lookUp(p *RoutePolicy) {
	for i, r := range p.Rules {
		if r.Named == nil || r.Problem != "" {
			continue
		}
		now, n := *r, *r.Named
		now.Named, p.Rules[i] = &n, &now
		if n.Problem = w.unnamed(p, &n); n.Problem != "" {
			p.Notices[r.Name] = join(p.Notices[r.Name], "Requests are answered 500: "+n.Problem)
		}
	}
}

// unnamed says why a rule of a route handles nothing. Empty if it does.
func (w *world) unnamed(p *RoutePolicy, n *NamedRule) string {
	at := w.attachment(n.PolicyTarget)
	switch {
	case w.sites[n.key()] == nil:
		return fmt.Sprintf("%s does not exist", n)
	case !at.Found:
		return fmt.Sprintf("%s has no rule %s", n, n.Section)
	}
	for _, t := range p.Targets {
		for _, g := range t.Gateways {
			if !slices.Contains(at.Gateways, g) {
				return fmt.Sprintf("%s is not attached to Gateway %s", n, g)
			}
		}
	}
	return ""
}
