// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"strings"
	"testing"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// TestOnePolicyDegrades checks that a rule that Envoy would refuse does not affect other
// rules and policies.
func TestOnePolicyDegrades(t *testing.T) {
	s := snapshotOf(t, routeToWeb, gatewayOf("gw"),
		policyOf("bad", `{name: a, actions: [{type: RateLimit, rateLimit: {requests: 1, unit: Hour}}], matches: [{path: {type: RegularExpression, value: "\\Q/x"}}]}, {name: b, actions: [{type: Deny}], matches: [{path: {value: /b}}]}`),
		policyOf("good", `{name: a, actions: [{type: Deny}], matches: [{path: {value: /a}}]}`))
	var got []string
	for _, r := range s.Policies().Rules(ir.RouteKey{Kind: ir.KindHTTPRoute, NamespacedName: name("web")}, "", name("gw"), "") {
		got = append(got, r.Policy.Name+"/"+r.Name)
	}
	if want := "bad/b good/a"; strings.Join(got, " ") != want {
		t.Errorf("want the rules %s, got %v", want, got)
	}
	for p := range s.Policies().All() {
		for _, r := range p.Rules {
			if bad := p.Name.Name == "bad" && r.Name == "a"; bad != strings.Contains(r.Problem, `\E`) {
				t.Errorf("rule %s of %s: problem %q", r.Name, p.Name, r.Problem)
			}
		}
	}
}
