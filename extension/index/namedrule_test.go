// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"strings"
	"testing"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

const (
	handledByStrict = "{name: a, actions: [{type: Route, route: {rule: {name: strict, sectionName: careful}}}]}"

	strictRoute = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: strict}
spec:
  parentRefs: [{name: gw, namespace: infra}]
  rules:
  - name: careful
    backendRefs: [{name: app, port: 80}]
`
)

// TestNamedRules says why a rule that a policy names handles nothing, whatever comes first.
func TestNamedRules(t *testing.T) {
	const answers = "Requests are answered 500: "
	p := policyOf("p", handledByStrict)
	cases := map[string]struct {
		reason string
		docs   []string
		want   string
	}{
		"Fine":       {reason: "Of a rule that is there nothing should be said.", docs: []string{p, routeToWeb, strictRoute}},
		"Earlier":    {reason: "It should not matter what is known first.", docs: []string{strictRoute, routeToWeb, p}},
		"Gone":       {reason: "A route that is not there should be told.", docs: []string{p, routeToWeb}, want: answers + "HTTPRoute shop/strict does not exist"},
		"OtherRule":  {reason: "So should a rule.", docs: []string{p, routeToWeb, strings.Replace(strictRoute, "careful", "careless", 1)}, want: answers + "HTTPRoute shop/strict has no rule careful"},
		"OtherKind":  {reason: "A GRPCRoute of that name is another route.", docs: []string{p, routeToWeb, strings.Replace(strictRoute, "HTTPRoute", "GRPCRoute", 1)}, want: answers + "HTTPRoute shop/strict does not exist"},
		"GRPCRoute":  {reason: "It should be found where it is asked for.", docs: []string{strings.Replace(p, "rule: {", "rule: {kind: GRPCRoute, ", 1), routeToWeb, strings.Replace(strictRoute, "HTTPRoute", "GRPCRoute", 1)}},
		"Elsewhere":  {reason: "A rule at other Gateways handles nothing here.", docs: []string{p, routeToWeb, strings.Replace(strictRoute, "name: gw", "name: other", 1)}, want: answers + "HTTPRoute shop/strict is not attached to Gateway infra/gw"},
		"OtherSpace": {reason: "A route of another namespace is another route.", docs: []string{p, routeToWeb, strings.Replace(strictRoute, "name: strict", "name: strict, namespace: other", 1)}, want: answers + "HTTPRoute shop/strict does not exist"},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			s := snapshotOf(t, tc.docs...)
			of := s.Edit().Policies.Get(name("p"))
			if got := of.Notices["a"]; got != tc.want {
				t.Errorf("%s\nwant notice %q, got %q", tc.reason, tc.want, got)
			}
			if got := s.AttachedRules(ir.PolicyTarget{Route: ir.KindHTTPRoute, NamespacedName: name("web")}); len(got) != 1 || got[0].Named == nil {
				t.Errorf("%s\nwhatever it names, the rule should be asked, lest the route serve its requests: %+v", tc.reason, got)
			}
		})
	}
}

// TestNamedRuleComesAndGoes checks that a policy hears of the route that it names, and no
// longer when it does not.
func TestNamedRuleComesAndGoes(t *testing.T) {
	s := NewStore()
	said := func() string { return s.Snapshot().Edit().Policies.Get(name("p")).Notices["a"] }
	apply(t, s, false, policyOf("p", handledByStrict), routeToWeb)
	const gone = "Requests are answered 500: HTTPRoute shop/strict does not exist"
	if said() != gone {
		t.Errorf("want %q, got %q", gone, said())
	}
	apply(t, s, false, strictRoute)
	if said() != "" {
		t.Errorf("the route has come, and it still says %q", said())
	}
	apply(t, s, true, strictRoute)
	if said() != gone {
		t.Errorf("the route has gone: want %q, got %q", gone, said())
	}
	apply(t, s, false, policyOf("p", "{name: a, actions: [{type: Deny}]}"))
	if n := len(s.objects.policyDependents); n != 1 {
		t.Errorf("want the policy to rest on its target alone, it rests on %d routes", n)
	}
}

func TestParseNamedRule(t *testing.T) {
	s := snapshotOf(t, policyOf("p", "{name: a, actions: [{type: Route, route: {rule: {kind: TCPRoute, name: strict, sectionName: careful}}}]}"))
	if got, want := s.Edit().Policies.Get(name("p")).Rules[0].Problem, `actions[0]: TCPRoute strict has no rule "careful"`; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
}

func TestSameAction(t *testing.T) {
	named := func(section, problem string) *ir.PolicyRule {
		return &ir.PolicyRule{Named: &ir.NamedRule{PolicyTarget: ir.PolicyTarget{Route: ir.KindHTTPRoute, NamespacedName: name("strict"), Section: section}, Problem: problem}}
	}
	cases := map[string]struct {
		reason string
		a, b   *ir.PolicyRule
		want   bool
	}{
		"SameRule":   {reason: "To be handled by one rule is the same, wherever that is missing.", a: named("careful", ""), b: named("careful", "gone"), want: true},
		"OtherRule":  {reason: "Another rule does something else.", a: named("careful", ""), b: named("careless", "")},
		"OtherRoute": {reason: "So does the route itself.", a: named("careful", ""), b: &ir.PolicyRule{}},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			if got := tc.a.SameAction(tc.b); got != tc.want {
				t.Errorf("%s\nSameAction(...): want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}
