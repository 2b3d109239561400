// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	kmeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// presents returns a rule that presents a certificate with an optional problem.
func presents(problem string, backends ...ir.BackendRef) *ir.PolicyRule {
	c := &ir.ClientCertificate{Secret: nn("client"), Problem: problem}
	if problem != "" {
		c.Reason = ir.ReasonInvalidCertificate
	}
	return &ir.PolicyRule{Name: "x", Certificate: c, Backends: backends}
}

func TestCertificates(t *testing.T) {
	web := ir.BackendRef{Kind: ir.BackendServices, NamespacedName: nn("web"), Port: 443, Weight: 1}
	plain := ir.BackendRef{Kind: ir.BackendService, NamespacedName: nn("plain"), Port: 80, Weight: 1}
	key := web.Target(ir.KindHTTPRoute)
	secure := &ir.Target{Key: key, Shape: ir.Shape{TLS: &ir.UpstreamTLS{}}}
	routeTo := func(b ...ir.BackendRef) []*ir.Route {
		return []*ir.Route{{
			Key: ir.RouteKey{Kind: ir.KindHTTPRoute, NamespacedName: nn("web")}, Gateways: []types.NamespacedName{nn("gw")}, Rules: []ir.Rule{{Backends: b}},
		}}
	}
	named := func(problem string) *ir.PolicyRule {
		r := presents("")
		r.Named = &ir.NamedRule{PolicyTarget: ir.PolicyTarget{Route: ir.KindHTTPRoute, NamespacedName: nn("strict"), Section: "careful"}, Problem: problem}
		return r
	}
	strict := func(b ir.BackendRef) []*ir.Route {
		return append(routeTo(web), &ir.Route{
			Key: ir.RouteKey{Kind: ir.KindHTTPRoute, NamespacedName: nn("strict")}, Rules: []ir.Rule{{Name: "other", Backends: []ir.BackendRef{web}}, {Name: "careful", Backends: []ir.BackendRef{b}}},
		})
	}
	const noTLS = "Requests for default/web, port 443, get a 503 response: it does not use TLS; attach a BackendTLSPolicy to it"
	const all = "True/ResolvedRefs: All client certificates can be presented"
	cases := map[string]struct {
		reason   string
		rule     *ir.PolicyRule
		routes   []*ir.Route
		target   *ir.Target
		gateway  bool
		foreign  bool
		resolved string
		message  string
	}{
		"None":         {reason: "A policy without a Secret has no ResolvedRefs condition.", rule: denies("x"), routes: routeTo(web), target: secure},
		"Fine":         {reason: "A usable certificate is reported as resolved.", rule: presents(""), routes: routeTo(web), target: secure, resolved: all},
		"Problem":      {reason: "A certificate with a problem is reported with the reason.", rule: presents("Secret is gone"), routes: routeTo(web), target: secure, resolved: "False/InvalidClientCertificateRef: Rule x: Secret is gone"},
		"Foreign":      {reason: "The certificates that another extension reads are unknown.", rule: presents(""), routes: routeTo(web), target: secure, foreign: true},
		"NoTLS":        {reason: "A backend without TLS is reported.", rule: presents(""), routes: routeTo(web), target: &ir.Target{Key: key}, resolved: all, message: noTLS},
		"GatewayNoTLS": {reason: "A backend without TLS is reported for the policy of a Gateway.", rule: presents(""), routes: routeTo(web), target: &ir.Target{Key: key}, gateway: true, resolved: all, message: noTLS},
		"OwnNoTLS":     {reason: "If a rule has backends, only these count.", rule: presents("", web), routes: routeTo(plain), target: &ir.Target{Key: key}, resolved: all, message: noTLS},
		"NotOurs":      {reason: "A backend of another kind is reported.", rule: presents(""), routes: routeTo(web, plain), target: secure, resolved: all, message: "Requests for default/plain get a 503 response: it is no TailscaleServices or TailscaleEndpoints, and only Envoy Gateway presents certificates to other backends"},
		"Named":        {reason: "If a policy targets a rule of a route, only the backends of that rule count.", rule: named(""), routes: strict(plain), target: secure, resolved: all, message: "Requests for default/plain get a 503 response: it is no TailscaleServices or TailscaleEndpoints, and only Envoy Gateway presents certificates to other backends"},
		"NamedFine":    {reason: "A certificate is presented to the backends of the targeted rule.", rule: named(""), routes: strict(web), target: secure, resolved: all},
		"NamedGone":    {reason: "The backends of a missing rule do not matter.", rule: named("HTTPRoute default/strict does not exist"), routes: routeTo(web), target: secure, resolved: all},
		"OtherRoute":   {reason: "A route without Tailscale backends is reported.", rule: presents(""), resolved: all, message: "Requests get a 503 response: default/web references no TailscaleServices or TailscaleEndpoints, and only Envoy Gateway presents certificates to other backends"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			target := "web"
			if tc.gateway {
				target = ""
			}
			p := policy("a", target, tc.rule)
			if !tc.foreign {
				p.Served = []types.NamespacedName{nn("gw")}
			}
			c := ir.Contents{Policies: []*ir.RoutePolicy{p}, Routes: tc.routes}
			if tc.target != nil {
				c.Targets = []*ir.Target{tc.target}
			}
			s := states(ir.NewSnapshot(c))[nn("a")].status(gatewayv1alpha1.TailscaleRoutePolicyStatus{})
			resolved := ""
			if c := kmeta.FindStatusCondition(s.Ancestors[0].Conditions, "ResolvedRefs"); c != nil {
				resolved = string(c.Status) + "/" + c.Reason + ": " + c.Message
			}
			if diff := cmp.Diff([]string{tc.resolved, tc.message}, []string{resolved, s.Rules[0].Message}); diff != "" {
				t.Errorf("%s\nstates(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
