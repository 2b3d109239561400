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

// TestNamedRules checks the notices about the named rule of a policy, independent of the
// order of objects.
func TestNamedRules(t *testing.T) {
	const answers = "Requests are answered 500: "
	p := policyOf("p", handledByStrict)
	cases := map[string]struct {
		reason string
		docs   []string
		want   string
	}{
		"Fine":            {reason: "An existing rule should have no notice.", docs: []string{p, routeToWeb, strictRoute}},
		"Earlier":         {reason: "The order of the objects should not matter.", docs: []string{strictRoute, routeToWeb, p}},
		"Gone":            {reason: "A missing route should be reported.", docs: []string{p, routeToWeb}, want: answers + "HTTPRoute shop/strict does not exist"},
		"ConflictingRule": {reason: "A missing rule of the route should be reported.", docs: []string{p, routeToWeb, strings.Replace(strictRoute, "careful", "careless", 1)}, want: answers + "HTTPRoute shop/strict has no rule careful"},
		"OtherKind":       {reason: "A GRPCRoute with the same name should be another route.", docs: []string{p, routeToWeb, strings.Replace(strictRoute, "HTTPRoute", "GRPCRoute", 1)}, want: answers + "HTTPRoute shop/strict does not exist"},
		"GRPCRoute":       {reason: "A GRPCRoute should be found if the policy names one.", docs: []string{strings.Replace(p, "rule: {", "rule: {kind: GRPCRoute, ", 1), routeToWeb, strings.Replace(strictRoute, "HTTPRoute", "GRPCRoute", 1)}},
		"Elsewhere":       {reason: "A route that is not attached to the Gateway should be reported.", docs: []string{p, routeToWeb, strings.Replace(strictRoute, "name: gw", "name: other", 1)}, want: answers + "HTTPRoute shop/strict is not attached to Gateway infra/gw"},
		"OtherSpace":      {reason: "A route of another namespace should be another route.", docs: []string{p, routeToWeb, strings.Replace(strictRoute, "name: strict", "name: strict, namespace: other", 1)}, want: answers + "HTTPRoute shop/strict does not exist"},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			s := snapshotOf(t, tc.docs...)
			policy := s.Edit().Policies.Get(name("p"))
			if got := policy.Notices["a"]; got != tc.want {
				t.Errorf("%s\nwant notice %q, got %q", tc.reason, tc.want, got)
			}
			if got := s.Policies().Attached(ir.PolicyTarget{Route: ir.KindHTTPRoute, NamespacedName: name("web")}); len(got) != 1 || got[0].Named == nil {
				t.Errorf("%s\nwant the policy's rule attached, because otherwise the route would handle its requests: %+v", tc.reason, got)
			}
		})
	}
}

// TestNamedRuleComesAndGoes checks that a policy depends on the route that it names, and
// stops depending on it when it names it no longer.
func TestNamedRuleComesAndGoes(t *testing.T) {
	s := NewStore()
	policyNotice := func() string { return s.Snapshot().Edit().Policies.Get(name("p")).Notices["a"] }
	apply(t, s, false, policyOf("p", handledByStrict), routeToWeb)
	const absent = "Requests are answered 500: HTTPRoute shop/strict does not exist"
	if policyNotice() != absent {
		t.Errorf("want %q, got %q", absent, policyNotice())
	}
	apply(t, s, false, strictRoute)
	if policyNotice() != "" {
		t.Errorf("want no notice after the route is created, got %q", policyNotice())
	}
	apply(t, s, true, strictRoute)
	if policyNotice() != absent {
		t.Errorf("after the route is deleted: want %q, got %q", absent, policyNotice())
	}
	apply(t, s, false, policyOf("p", "{name: a, actions: [{type: Deny}]}"))
	if n := len(s.objects.policyDependents); n != 1 {
		t.Errorf("want the policy to depend on its target alone, got %d dependencies", n)
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
		"SameRule":        {reason: "The same named rule should be the same action, even if the rule is missing at one Gateway.", a: named("careful", ""), b: named("careful", "gone"), want: true},
		"ConflictingRule": {reason: "Another named rule should be another action.", a: named("careful", ""), b: named("careless", "")},
		"OtherRoute":      {reason: "No named rule should be another action.", a: named("careful", ""), b: &ir.PolicyRule{}},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			if got := tc.a.SameAction(tc.b); got != tc.want {
				t.Errorf("%s\nSameAction(...): want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}
