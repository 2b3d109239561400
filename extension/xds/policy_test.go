// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// A hostile policy has one rule, with one match and one action.
type hostile struct {
	pathType, path          string
	headerType, name, value string
	method                  string
	set, setValue           string
	hostname, redirectPath  string
}

// rules returns the rules that package parse accepts from a policy.
func (h hostile) rules() []*ir.PolicyRule {
	m := gatewayv1alpha1.RoutePolicyMatch{
		Path:    &gwapiv1.HTTPPathMatch{Type: ptr.To(gwapiv1.PathMatchType(h.pathType)), Value: ptr.To(h.path)},
		Headers: []gwapiv1.HTTPHeaderMatch{{Type: ptr.To(gwapiv1.HeaderMatchType(h.headerType)), Name: gwapiv1.HTTPHeaderName(h.name), Value: h.value}},
	}
	if h.method != "" {
		m.Method = ptr.To(gwapiv1.HTTPMethod(h.method))
	}
	action := gatewayv1alpha1.RoutePolicyAction{Type: gatewayv1alpha1.ActionDeny}
	switch {
	case h.hostname != "" || h.redirectPath != "":
		action = gatewayv1alpha1.RoutePolicyAction{Type: gatewayv1alpha1.ActionRedirect, Redirect: &gatewayv1alpha1.RoutePolicyRedirect{
			Hostname: ptr.To(gwapiv1.PreciseHostname(h.hostname)), Path: ptr.To(h.redirectPath),
		}}
	case h.set != "":
		action = gatewayv1alpha1.RoutePolicyAction{Type: gatewayv1alpha1.ActionRequestHeaderModifier, RequestHeaderModifier: &gwapiv1.HTTPHeaderFilter{
			Set: []gwapiv1.HTTPHeader{{Name: gwapiv1.HTTPHeaderName(h.set), Value: h.setValue}}, Remove: []string{h.set},
		}}
	}
	p := &gatewayv1alpha1.TailscaleRoutePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	p.Spec.TargetRefs = []gwapiv1.LocalPolicyTargetReferenceWithSectionName{{
		LocalPolicyTargetReference: gwapiv1.LocalPolicyTargetReference{Group: gwapiv1.GroupName, Kind: "HTTPRoute", Name: "web"},
	}}
	p.Spec.Rules = []gatewayv1alpha1.RoutePolicyRule{{Name: "a", Matches: []gatewayv1alpha1.RoutePolicyMatch{m}, Actions: []gatewayv1alpha1.RoutePolicyAction{action}}}
	return slices.DeleteFunc(parse.ParseRoutePolicy(p).Rules, func(r *ir.PolicyRule) bool { return r.Problem != "" })
}

// routes returns the routes that the extension makes of a policy.
func (h hostile) routes(t *testing.T) []*routev3.Route {
	t.Helper()
	var out []*routev3.Route
	base := &routev3.Route{
		Name:   "httproute/shop/web/rule/0/match/0/*",
		Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
		Action: &routev3.Route_Route{Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: "c"}}},
	}
	for _, r := range h.rules() {
		for i := range r.Matches {
			if err := CheckRule(r); err != nil {
				t.Fatalf("an invalid rule is accepted: %v", err)
			}
			route, err := routeOf(base, r, &r.Matches[i], nil, nil)
			if err != nil {
				t.Fatalf("cannot make the route of %+v: %v", h, err)
			}
			out = append(out, route)
		}
	}
	return out
}

// check checks that Envoy accepts the routes of a policy: it refuses a listener with one invalid
// route. It returns the number of routes. TestEnvoyAcceptsPolicies asks Envoy itself.
func (h hostile) check(t *testing.T) int {
	t.Helper()
	all := h.routes(t)
	for _, route := range all {
		if err := route.ValidateAll(); err != nil {
			t.Fatalf("Envoy would refuse the route of %+v: %v", h, err)
		}
		for _, m := range route.GetMatch().GetHeaders() {
			re := m.GetStringMatch().GetSafeRegex()
			if re == nil {
				continue
			}
			if _, err := regexp.Compile(re.GetRegex()); err != nil {
				t.Fatalf("Envoy would refuse the expression %q of %+v: %v", re.GetRegex(), h, err)
			}
		}
	}
	return len(all)
}

// routeOf returns the route that a policy's rule inserts before a route.
func routeOf(r *routev3.Route, rule *ir.PolicyRule, m *ir.PolicyMatch, clusters []WeightedCluster, as *routev3.Route) (*routev3.Route, error) {
	ins, err := NewInsertion(rule, m, clusters)
	if err != nil {
		return nil, err
	}
	return ins.Route(r, as)
}

func hostiles() map[string]hostile {
	const expression = "RegularExpression"
	return map[string]hostile{
		"OpenQuote":       {pathType: expression, path: `\Q/x`, headerType: "Exact", name: "x", value: "y"},
		"OpenQuoteLater":  {pathType: expression, path: `/a\Q.b`, headerType: "Exact", name: "x", value: "y"},
		"OpenQuoteHeader": {pathType: "Exact", path: "/", headerType: expression, name: "x", value: `\Qy`},
		"Tilde":           {pathType: "Exact", path: "/", headerType: "Exact", name: "x", value: "~["},
		"Parentheses":     {pathType: expression, path: `/a)|(?:/b`, headerType: "Exact", name: "x", value: "y"},
		"Flags":           {pathType: expression, path: `(?i)/a|/b`, headerType: "Exact", name: "x", value: "y"},
		"NothingMatched":  {pathType: expression, path: `[^\x00-\x{10FFFF}]`, headerType: "Exact", name: "x", value: "y"},
		"Large":           {pathType: expression, path: `/(?:\pL\pN\pS){1000}`, headerType: "Exact", name: "x", value: "y"},
		"Deep":            {pathType: expression, path: strings.Repeat("(", 400) + "a" + strings.Repeat(")", 400), headerType: "Exact", name: "x", value: "y"},
		"EmptyHeader":     {pathType: "Exact", path: "/", headerType: expression, name: "x", value: ""},
		"NewLine":         {pathType: "Exact", path: "/\n", headerType: "Exact", name: "x", value: "y\n"},
		"Zero":            {pathType: "PathPrefix", path: "/\x00", headerType: "Exact", name: "x", value: "\x00"},
		"HeaderName":      {pathType: "Exact", path: "/", headerType: "Exact", name: ":path\n", value: "y"},
		"Method":          {pathType: "Exact", path: "/", headerType: "Exact", name: "x", value: "y", method: "GET\n"},
		"SetPath":         {pathType: "Exact", path: "/", headerType: "Exact", name: "x", value: "y", set: ":path", setValue: "%REQ(:authority"},
		"SetValue":        {pathType: "Exact", path: "/", headerType: "Exact", name: "x", value: "y", set: "a", setValue: "%REQ(:authority%"},
		"RedirectHost":    {pathType: "Exact", path: "/", headerType: "Exact", name: "x", value: "y", hostname: "a\r\nb: c", redirectPath: "/"},
		"RedirectPath":    {pathType: "Exact", path: "/", headerType: "Exact", name: "x", value: "y", hostname: "a", redirectPath: "/\r\nb: %REQ("},
		"Plain":           {pathType: expression, path: `/v[0-9]+/.*`, headerType: expression, name: "x", value: `a\Q.\Eb`},
	}
}

// TestHostilePolicies tries policies that tenants may write.
func TestHostilePolicies(t *testing.T) {
	for n, h := range hostiles() {
		t.Run(n, func(t *testing.T) {
			count := h.check(t)
			if want := n == "Plain"; want && count == 0 {
				t.Errorf("a valid policy must not be dropped")
			}
		})
	}
}

// TestCheckRule checks rules that package parse would have omitted.
func TestCheckRule(t *testing.T) {
	cases := map[string]ir.PolicyRule{
		"Expression": {Deny: true, Matches: []ir.PolicyMatch{{}, {Match: ir.Match{PathType: "RegularExpression", Path: `\Q/x`}}}},
		"Header":     {Deny: true, Matches: []ir.PolicyMatch{{Match: ir.Match{Headers: []string{"a\n=b"}}}}},
		"Change":     {Response: ir.HeaderChange{Set: []ir.Header{{Name: "a", Value: "b\n"}}}},
		"Redirect":   {Redirect: &ir.PolicyRedirect{Hostname: "a\n"}},
	}
	for n, r := range cases {
		if err := CheckRule(&r); err == nil {
			t.Errorf("%s: want an error for a rule that Envoy refuses", n)
		}
	}
	good := &ir.PolicyRule{Deny: true, Matches: []ir.PolicyMatch{{Match: ir.Match{PathType: "PathPrefix", Path: "/a", Headers: []string{"a=~b.*"}}}}}
	if err := CheckRule(good); err != nil {
		t.Errorf("want no error for a rule that Envoy accepts: %v", err)
	}
}

// TestNamesAlone checks that a rule denies requests if it would admit them by names that clients
// choose, and that it applies to its other matches.
func TestNamesAlone(t *testing.T) {
	cases := map[string]struct {
		reason string
		rule   ir.PolicyRule
	}{
		"Route":  {reason: "No request should reach another backend.", rule: ir.PolicyRule{Backends: []ir.BackendRef{{Weight: 1}}}},
		"Named":  {reason: "No request should reach another rule.", rule: ir.PolicyRule{Named: &ir.NamedRule{}}},
		"LetsIn": {reason: "No request should reach the route itself.", rule: ir.PolicyRule{Request: ir.HeaderChange{Set: []ir.Header{{Name: "X-Operator", Value: "yes"}}}}},
		"Sent":   {reason: "No request should get a redirect.", rule: ir.PolicyRule{Redirect: &ir.PolicyRedirect{Path: "/staff"}}},
	}
	base := &routev3.Route{
		Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
		Action: &routev3.Route_Route{Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: "c"}}},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			tc.rule.Matches = []ir.PolicyMatch{{NamesOnly: true}, {}}
			for i, denied := range []bool{true, false} {
				got, err := routeOf(base, &tc.rule, &tc.rule.Matches[i], []WeightedCluster{{Cluster: "d", Weight: 1}}, base)
				if err != nil {
					t.Fatal(err)
				}
				if forbidden := got.GetDirectResponse().GetStatus() == http.StatusForbidden; forbidden != denied {
					t.Errorf("%s\nmatches[%d] is denied: %t, got %s", tc.reason, i, forbidden, got)
				}
				if denied && len(got.GetRequestHeadersToAdd()) > 0 {
					t.Errorf("%s\na forged request would be admitted: %s", tc.reason, got)
				}
			}
		})
	}
}

// FuzzPolicy checks that Envoy accepts the routes of any policy.
func FuzzPolicy(f *testing.F) {
	for _, h := range hostiles() {
		f.Add(h.pathType, h.path, h.headerType, h.name, h.value, h.method, h.set, h.setValue, h.hostname, h.redirectPath)
	}
	f.Fuzz(func(t *testing.T, pathType, path, headerType, name, value, method, set, setValue, hostname, redirectPath string) {
		for _, s := range []string{pathType, path, headerType, name, value, method, set, setValue, hostname, redirectPath} {
			if !utf8.ValidString(s) {
				return // Objects of the API contain valid UTF-8 only.
			}
		}
		hostile{pathType, path, headerType, name, value, method, set, setValue, hostname, redirectPath}.check(t)
	})
}
