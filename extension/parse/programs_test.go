// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/utils/ptr"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// TestPolicyPrograms checks that what the expressions of a policy cost is limited, however many rules
// have one.
func TestPolicyPrograms(t *testing.T) {
	rules := func(n int, expression func(i int) string, action gatewayv1alpha1.RoutePolicyActionType) *gatewayv1alpha1.TailscaleRoutePolicy {
		p := &gatewayv1alpha1.TailscaleRoutePolicy{}
		for i := range n {
			p.Spec.Rules = append(p.Spec.Rules, gatewayv1alpha1.RoutePolicyRule{
				Matches: []gatewayv1alpha1.RoutePolicyMatch{{Path: &gwapiv1.HTTPPathMatch{Type: ptr.To(gwapiv1.PathMatchRegularExpression), Value: ptr.To(expression(i))}}},
				Actions: []gatewayv1alpha1.RoutePolicyAction{{Type: action, RateLimit: &gatewayv1alpha1.RoutePolicyRateLimit{Requests: 1, Unit: gatewayv1alpha1.RatePerSecond}}},
			})
		}
		return p
	}
	large := func(i int) string { return fmt.Sprintf("/%d.{1000}", i) }
	cases := map[string]struct {
		reason string
		policy *gatewayv1alpha1.TailscaleRoutePolicy
		refuse bool
	}{
		"Usual":   {reason: "Usual expressions should be accepted.", policy: rules(16, func(i int) string { return fmt.Sprintf("/v%d/[a-z]+/.*", i) }, gatewayv1alpha1.ActionRateLimit)},
		"Same":    {reason: "An expression should count once.", policy: rules(64, func(int) string { return "/.{1000}" }, gatewayv1alpha1.ActionRateLimit)},
		"Many":    {reason: "Those beyond the limit should be refused.", policy: rules(64, large, gatewayv1alpha1.ActionRateLimit), refuse: true},
		"Refused": {reason: "Those that are refused for themselves should count.", policy: rules(64, func(i int) string { return fmt.Sprintf(`/%d\pL{40}`, i) }, gatewayv1alpha1.ActionRateLimit), refuse: true},
		"Deny":    {reason: "A Deny rule should deny more.", policy: rules(64, large, gatewayv1alpha1.ActionDeny), refuse: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			total, refused, seen := 0, false, map[string]bool{}
			for _, r := range ParseRoutePolicy(tc.policy).Rules {
				refused = refused || strings.Contains(r.Problem+r.Widened, "beyond the limit of a policy")
				for _, m := range r.Matches {
					if !seen[m.Path] {
						total += m.PathSize
					}
					seen[m.Path] = true
				}
			}
			if total > ir.MaxPolicyPrograms+2*ir.MaxProgram {
				t.Errorf("%s\nthe expressions have %d instructions", tc.reason, total)
			}
			if refused != tc.refuse {
				t.Errorf("%s\nsome are refused: %t, want %t", tc.reason, refused, tc.refuse)
			}
		})
	}
}
