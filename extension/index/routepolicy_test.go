// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// gatewayOf returns a Gateway with a name and one listener.
func gatewayOf(name string) string {
	return `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: ` + name + `, namespace: infra}
spec: {gatewayClassName: envoy, listeners: [{name: http, protocol: HTTP, port: 80, allowedRoutes: {namespaces: {from: All}}}]}
`
}

// policyOf returns a policy with one rule for the route web.
func policyOf(name, rule string) string {
	return `
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleRoutePolicy
metadata: {name: ` + name + `}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: web}]
  rules: [` + rule + `]
`
}

func TestParseRoutePolicy(t *testing.T) {
	cases := map[string]struct {
		reason string
		rule   string
		want   ir.PolicyRule
	}{
		"Matches": {
			reason: "All conditions of a match should be kept.",
			rule: `{name: a, priority: 3, actions: [{type: Deny}], matches: [{method: POST, path: {type: Exact, value: /x}, headers: [{name: B, value: "1"}, {name: A, type: RegularExpression, value: "2.*"}],
				tailnetDevice: {addresses: [100.64.9.9/16, 100.64.0.7, "::ffff:100.64.0.7", "fd7a:115c:a1e0::7"]}}]}`,
			want: ir.PolicyRule{Name: "a", Priority: 3, Deny: true, Matches: []ir.PolicyMatch{{
				Match:   ir.Match{Method: "POST", Path: "/x", PathType: "Exact", Headers: []string{"a=~2.*", "b=1"}},
				Clients: []netip.Prefix{netip.MustParsePrefix("100.64.0.0/16"), netip.MustParsePrefix("100.64.0.7/32"), netip.MustParsePrefix("fd7a:115c:a1e0::7/128")},
			}}},
		},
		"Actions": {
			reason: "All actions of a rule should be kept.",
			rule: `{name: a, actions: [{type: Route, route: {backendRefs: [{name: b, port: 80}, {kind: TailscaleEndpoints, name: c, port: 81, weight: 0}]}}, {type: Timeouts, timeouts: {request: 1m30s}},
				{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: X, value: "1"}], add: [{name: W, value: "2"}], remove: [Z]}}]}`,
			want: ir.PolicyRule{
				Name: "a",
				Backends: []ir.BackendRef{
					{Kind: ir.BackendServices, NamespacedName: name("b"), Port: 80, Weight: 1},
					{Kind: ir.BackendEndpoints, NamespacedName: name("c"), Port: 81, Index: 1},
				},
				Timeout: ptr.To(90 * time.Second),
				Request: ir.HeaderChange{Set: []ir.Header{{Name: "X", Value: "1"}}, Add: []ir.Header{{Name: "W", Value: "2"}}, Remove: []string{"Z"}},
			},
		},
		"NamedRule": {
			reason: "A named rule should be kept, and reported as missing.",
			rule:   `{name: a, actions: [{type: Route, route: {rule: {kind: GRPCRoute, name: b, sectionName: c}}}]}`,
			want: ir.PolicyRule{Name: "a", Named: &ir.NamedRule{
				PolicyTarget: ir.PolicyTarget{Route: ir.KindGRPCRoute, NamespacedName: name("b"), Section: "c"}, Problem: "GRPCRoute shop/b does not exist",
			}},
		},
		"Redirect": {
			reason: "A redirect should be kept.",
			rule:   `{name: a, actions: [{type: Redirect, redirect: {scheme: https, hostname: h.example.com, port: 8443, path: /p, statusCode: 301}}]}`,
			want:   ir.PolicyRule{Name: "a", Redirect: &ir.PolicyRedirect{Scheme: "https", Hostname: "h.example.com", Port: 8443, Path: "/p", StatusCode: 301}},
		},
		"RateLimit": {
			reason: "A rate limit should be kept.",
			rule:   `{name: a, actions: [{type: RateLimit, rateLimit: {requests: 7, unit: Minute}}]}`,
			want:   ir.PolicyRule{Name: "a", RateLimit: &ir.RateLimit{Requests: 7, Period: time.Minute}},
		},
		"NoRate": {
			reason: "A rate of 0 should be reported.",
			rule:   `{name: a, actions: [{type: RateLimit, rateLimit: {requests: 0, unit: Minute}}]}`,
			want:   ir.PolicyRule{Name: "a", Problem: "actions[0]: RateLimit says nothing of what to do"},
		},
		"BadExpression": {
			reason: "An expression that Envoy cannot compile should be reported, because Envoy would refuse all routes.",
			rule:   `{name: a, actions: [{type: RateLimit, rateLimit: {requests: 7, unit: Minute}}], matches: [{path: {type: RegularExpression, value: "("}}]}`,
			want:   ir.PolicyRule{Name: "a", Problem: "matches[0]: cannot be compiled: error parsing regexp: missing closing ): `(`"},
		},
		"BadExpressionLater": {
			reason: "An omitted rule should have no Discovery.",
			rule:   `{name: a, actions: [{type: RateLimit, rateLimit: {requests: 7, unit: Minute}}], matches: [{tailnetDevice: {tailnet: corp, tags: ["tag:a"]}}, {path: {type: RegularExpression, value: "("}}]}`,
			want:   ir.PolicyRule{Name: "a", Problem: "matches[1]: cannot be compiled: error parsing regexp: missing closing ): `(`"},
		},
		"DenyOfBadPath": {
			reason: "A Deny rule should stay without its invalid path, and deny requests that meet the other conditions.",
			rule:   `{name: a, actions: [{type: Deny}], matches: [{path: {value: /a}}, {path: {type: RegularExpression, value: "("}, method: POST, headers: [{name: X, value: b}]}]}`,
			want: ir.PolicyRule{
				Name: "a", Deny: true, Widened: "matches[1]: cannot be compiled: error parsing regexp: missing closing ): `(`",
				Matches: []ir.PolicyMatch{{Match: ir.Match{PathType: "PathPrefix", Path: "/a"}}, {Match: ir.Match{Method: "POST", Headers: []string{"x=b"}}}},
			},
		},
		"DenyOfBadHeader": {
			reason: "A Deny rule should stay without its invalid header, and keep its other conditions.",
			rule:   `{name: a, actions: [{type: Deny}], matches: [{path: {value: /a}, headers: [{name: X, value: b}, {name: Z, type: RegularExpression, value: "("}]}]}`,
			want: ir.PolicyRule{
				Name: "a", Deny: true, Widened: "matches[0]: cannot be compiled: error parsing regexp: missing closing ): `(`",
				Matches: []ir.PolicyMatch{{Match: ir.Match{PathType: "PathPrefix", Path: "/a", Headers: []string{"x=b"}}}},
			},
		},
		"BadHeader": {
			reason: "A header that Envoy refuses should be reported.",
			rule:   `{name: a, actions: [{type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: X, value: "a\nb"}]}}]}`,
			want:   ir.PolicyRule{Name: "a", Problem: `actions[0]: "X" is no header, or cannot have this value`},
		},
		"Host": {
			reason: "A change of Host should be reported, because Envoy refuses it.",
			rule:   `{name: a, actions: [{type: RequestHeaderModifier, requestHeaderModifier: {remove: [host]}}]}`,
			want:   ir.PolicyRule{Name: "a", Problem: `actions[0]: "host" cannot be changed`},
		},
		"NamesAlone": {
			reason: "Names that users choose should not admit clients, even together with addresses.",
			rule:   `{name: a, actions: [{type: RateLimit, rateLimit: {requests: 7, unit: Minute}}], matches: [{tailnetDevice: {tailnet: corp, hostnames: ["b-*", "a-*"], addresses: [100.64.0.0/10]}}]}`,
			want: ir.PolicyRule{Name: "a", RateLimit: &ir.RateLimit{Requests: 7, Period: time.Minute}, Matches: []ir.PolicyMatch{{
				Devices: &ir.DeviceQuery{Tailnet: "corp", Hostnames: []string{"a-*", "b-*"}}, Clients: []netip.Prefix{}, NamesOnly: true,
			}}},
		},
		"NamesOfUsers": {
			reason: "Names together with users or tags should narrow these.",
			rule:   `{name: a, actions: [{type: Deny}], matches: [{tailnetDevice: {tailnet: corp, hostnames: ["b-*"], users: [amelie@example.com]}}, {tailnetDevice: {tailnet: corp, hostnames: ["b-*"], tags: ["tag:ci"]}}]}`,
			want: ir.PolicyRule{Name: "a", Deny: true, Matches: []ir.PolicyMatch{
				{Devices: &ir.DeviceQuery{Tailnet: "corp", Hostnames: []string{"b-*"}, Users: []string{"amelie@example.com"}}},
				{Devices: &ir.DeviceQuery{Tailnet: "corp", Hostnames: []string{"b-*"}, Tags: []string{"tag:ci"}}},
			}},
		},
		"NoAddress": {
			reason: "An invalid address should be reported.",
			rule:   `{name: a, actions: [{type: RateLimit, rateLimit: {requests: 7, unit: Minute}}], matches: [{tailnetDevice: {addresses: [laptop]}}]}`,
			want:   ir.PolicyRule{Name: "a", Problem: `matches[0]: "laptop" is neither an IP address nor a range`},
		},
		"DenyOfNoAddress": {
			reason: "A Deny rule should stay without its invalid addresses, and deny all clients.",
			rule:   `{name: a, actions: [{type: Deny}], matches: [{path: {value: /a}, tailnetDevice: {addresses: [laptop]}}]}`,
			want: ir.PolicyRule{
				Name: "a", Deny: true, Widened: `matches[0]: "laptop" is neither an IP address nor a range`,
				Matches: []ir.PolicyMatch{{Match: ir.Match{PathType: "PathPrefix", Path: "/a"}}},
			},
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			s := snapshotOf(t, policyOf("p", tc.rule))
			p := s.Edit().Policies.Get(name("p"))
			if p == nil || len(p.Rules) != 1 {
				t.Fatalf("%s\nwant one rule, got %v", tc.reason, p)
			}
			tc.want.Policy = name("p")
			if diff := cmp.Diff(&tc.want, p.Rules[0], cmpopts.EquateComparable(netip.Prefix{}), cmpopts.IgnoreFields(ir.PolicyRule{}, "Created"), cmpopts.IgnoreFields(ir.PolicyMatch{}, "PathSize")); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if usable := len(s.Policies().Attached(ir.PolicyTarget{Route: ir.KindHTTPRoute, NamespacedName: name("web")})) == 1; usable != (tc.want.Problem == "") {
				t.Errorf("%s\nthe rule is attached: %t", tc.reason, usable)
			}
		})
	}
}

// TestRoutePolicyAttaches checks where policies take effect, independent of the order of
// objects.
func TestRoutePolicyAttaches(t *testing.T) {
	const deny = "{name: a, actions: [{type: Deny}]}"
	gw := types.NamespacedName{Namespace: "infra", Name: "gw"}
	plain := strings.NewReplacer("group: gateway.tailscale.com, kind: TailscaleServices, ", "").Replace(routeToWeb)
	cases := map[string]struct {
		reason string
		docs   []string
		want   ir.Attachment
	}{
		"Missing":       {reason: "A missing route should be reported.", docs: []string{policyOf("p", deny)}},
		"Ours":          {reason: "A route to one of our kinds should be found.", docs: []string{policyOf("p", deny), routeToWeb, gatewayOf("gw")}, want: ir.Attachment{Found: true, Gateways: []types.NamespacedName{gw}, Listeners: []ir.PolicyTarget{{NamespacedName: gw}}}},
		"Plain":         {reason: "A route to a Service should be found.", docs: []string{gatewayOf("gw"), plain, policyOf("p", deny)}, want: ir.Attachment{Found: true, Gateways: []types.NamespacedName{gw}, Listeners: []ir.PolicyTarget{{NamespacedName: gw}}}},
		"UnknownRule":   {reason: "A missing rule should be reported.", docs: []string{plain, strings.Replace(policyOf("p", deny), "name: web}", "name: web, sectionName: first}", 1)}},
		"KnownRule":     {reason: "A rule should be found by its name.", docs: []string{strings.Replace(plain, "- backendRefs", "- name: first\n    backendRefs", 1), strings.Replace(policyOf("p", deny), "name: web}", "name: web, sectionName: first}", 1), gatewayOf("gw")}, want: ir.Attachment{Found: true, Gateways: []types.NamespacedName{gw}, Listeners: []ir.PolicyTarget{{NamespacedName: gw}}}},
		"KnownListener": {reason: "A listener should be found by its name.", docs: []string{policyGateway, gatewayOf("gw2")}, want: ir.Attachment{Found: true, Gateways: []types.NamespacedName{{Namespace: "infra", Name: "gw2"}}}},
		"OtherListener": {reason: "A missing listener should be reported.", docs: []string{gatewayOf("gw2"), strings.Replace(policyGateway, "sectionName: http", "sectionName: other", 1)}},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			s := snapshotOf(t, tc.docs...)
			for p := range s.Policies().All() {
				got := p.Targets[0]
				got.PolicyTarget = ir.PolicyTarget{}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
				}
			}
			for _, g := range tc.want.Gateways {
				if s.GatewayDigest(g) == "" {
					t.Errorf("%s\nwant a digest of Gateway %s", tc.reason, g)
				}
			}
		})
	}
}
