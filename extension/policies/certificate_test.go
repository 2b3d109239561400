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

// presents a certificate, unless there is a problem with it.
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
	const noTLS = "Requests for default/web, port 443, are answered 503: it speaks no TLS; attach a BackendTLSPolicy to it"
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
		"None":         {reason: "A policy that names no Secret should say nothing of any.", rule: denies("x"), routes: routeTo(web), target: secure},
		"Fine":         {reason: "What can be presented should be told.", rule: presents(""), routes: routeTo(web), target: secure, resolved: all},
		"Problem":      {reason: "What cannot be should be, with why.", rule: presents("Secret is gone"), routes: routeTo(web), target: secure, resolved: "False/InvalidClientCertificateRef: Rule x: Secret is gone"},
		"Foreign":      {reason: "Of what another extension reads nothing is known.", rule: presents(""), routes: routeTo(web), target: secure, foreign: true},
		"NoTLS":        {reason: "A backend without TLS should be told.", rule: presents(""), routes: routeTo(web), target: &ir.Target{Key: key}, resolved: all, message: noTLS},
		"GatewayNoTLS": {reason: "It should be for a Gateway's policy.", rule: presents(""), routes: routeTo(web), target: &ir.Target{Key: key}, gateway: true, resolved: all, message: noTLS},
		"OwnNoTLS":     {reason: "It should be of the rule's own backends, which count alone.", rule: presents("", web), routes: routeTo(plain), target: &ir.Target{Key: key}, resolved: all, message: noTLS},
		"NotOurs":      {reason: "A backend of another kind should be told.", rule: presents(""), routes: routeTo(web, plain), target: secure, resolved: all, message: "Requests for default/plain are answered 503: it is none of our kinds, and Envoy Gateway alone presents certificates to it"},
		"Named":        {reason: "Of a named rule its own backends count alone.", rule: named(""), routes: strict(plain), target: secure, resolved: all, message: "Requests for default/plain are answered 503: it is none of our kinds, and Envoy Gateway alone presents certificates to it"},
		"NamedFine":    {reason: "To these it is presented.", rule: named(""), routes: strict(web), target: secure, resolved: all},
		"NamedGone":    {reason: "Of a named rule that is not there its backends are of no matter.", rule: named("HTTPRoute default/strict does not exist"), routes: routeTo(web), target: secure, resolved: all},
		"OtherRoute":   {reason: "So should a route that names none of ours.", rule: presents(""), resolved: all, message: "Requests are answered 503: default/web names none of our kinds, and Envoy Gateway alone presents certificates to others"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			to := "web"
			if tc.gateway {
				to = ""
			}
			p := policy("a", to, tc.rule)
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
