// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"cmp"
	"fmt"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tailscale-gateway/tailscale-gateway/extension/gateways/routes"
)

// TestProtectedCost checks that a policy costs for its targets, not for all routes of a Gateway: both may
// be thousands.
func TestProtectedCost(t *testing.T) {
	allocs := func(n int) float64 {
		all := []client.Object{objects(t, tailscaleGateway)[0], objects(t, gateway)[0]}
		for i := range n {
			all = append(all, objects(t, routeTo("HTTPRoute", "shop", fmt.Sprintf("app%d", i), "{name: web}", "True", "rules: [{name: a, backendRefs: [{name: app, port: 80}]}]"))...)
		}
		inputs := inputOf(t, all...)
		for i := range n {
			inputs.guards = append(inputs.guards, routePolicyIn(t, "shop", fmt.Sprintf("{group: gateway.networking.k8s.io, kind: HTTPRoute, name: app%d}", i)))
		}
		ls := routes.Listeners(inputs.Gateway, inputs.Sets)
		userRoutes := routes.Accepted(inputs.Routes, ls)
		if protected := inputs.protectors(userRoutes, ls); len(userRoutes) != n || len(protected) != 1 {
			t.Fatalf("want %d routes and a protected Service, got %d and %v", n, len(userRoutes), protected)
		}
		return testing.AllocsPerRun(3, func() { inputs.protectors(userRoutes, ls) })
	}
	if few, many := allocs(20), allocs(200); many > 15*few {
		t.Errorf("200 policies and routes need %.0f allocations, want about ten times the %.0f of 20", many, few)
	}
}

// TestProtectedWithoutPolicy checks that the Gateway and the routes themselves protect backends.
func TestProtectedWithoutPolicy(t *testing.T) {
	const (
		certificates = "tls.frontend of Gateway shop/web"
		validation   = "validation: {caCertificateRefs: [{group: '', kind: ConfigMap, name: ca}]}"
		secret       = "Filter ExtensionRef of HTTPRoute shop/app"
	)
	frontend := func(tls string) string { return gateway + "  tls: {frontend: " + tls + "}\n" }
	rule := func(filters string) string {
		return "rules: [{filters: [" + filters + "], backendRefs: [{name: app, port: 80}]}, {backendRefs: [{name: open, port: 80}]}]"
	}
	cases := map[string]struct {
		reason  string
		gateway string
		kind    string
		section string
		rules   string
		want    map[string]string
	}{
		"None":         {reason: "Nothing protects.", gateway: gateway},
		"Default":      {reason: "Clients of the listener need a certificate.", gateway: frontend("{default: {" + validation + "}}"), want: map[string]string{"app": certificates, "open": certificates}},
		"Fallback":     {reason: "Also if invalid ones are admitted.", gateway: frontend("{default: {validation: {mode: AllowInsecureFallback, caCertificateRefs: [{group: '', kind: ConfigMap, name: ca}]}}}"), want: map[string]string{"app": certificates, "open": certificates}},
		"Port":         {reason: "Those of the port need one.", gateway: frontend("{default: {}, perPort: [{port: 443, tls: {" + validation + "}}]}"), want: map[string]string{"app": certificates, "open": certificates}},
		"OtherPort":    {reason: "Those of another port need one.", gateway: frontend("{default: {}, perPort: [{port: 444, tls: {" + validation + "}}]}")},
		"PortWithout":  {reason: "The port is an exception.", gateway: frontend("{default: {" + validation + "}, perPort: [{port: 443, tls: {}}]}")},
		"HTTP":         {reason: "A listener without TLS asks for no certificate.", gateway: frontend("{default: {" + validation + "}}"), section: "http"},
		"ExternalAuth": {reason: "A filter may ask a server.", gateway: gateway, rules: rule("{type: ExternalAuth, externalAuth: {protocol: HTTP, backendRef: {name: auth, port: 80}}}"), want: map[string]string{"app": "Filter ExternalAuth of HTTPRoute shop/app"}},
		"ExtensionRef": {reason: "A filter of another API group may do anything.", gateway: gateway, rules: rule("{type: ExtensionRef, extensionRef: {group: gateway.envoyproxy.io, kind: HTTPRouteFilter, name: f}}"), want: map[string]string{"app": secret}},
		"New":          {reason: "So may a type of filters that is newer than this.", gateway: gateway, rules: rule("{type: Quota}"), want: map[string]string{"app": "Filter Quota of HTTPRoute shop/app"}},
		"Open":         {reason: "Filters that change requests protect nothing.", gateway: gateway, rules: rule("{type: CORS, cors: {}}, {type: URLRewrite, urlRewrite: {hostname: a.example.com}}, {type: RequestHeaderModifier, requestHeaderModifier: {}}")},
		"Backend":      {reason: "A filter of a backendRef counts for the rule.", gateway: gateway, rules: "rules: [{backendRefs: [{name: app, port: 80, filters: [{type: ExtensionRef, extensionRef: {group: gateway.envoyproxy.io, kind: HTTPRouteFilter, name: f}}]}]}, {backendRefs: [{name: open, port: 80}]}]", want: map[string]string{"app": secret}},
		"GRPC":         {reason: "GRPCRoutes have such filters, too.", gateway: gateway, kind: "GRPCRoute", rules: rule("{type: ExtensionRef, extensionRef: {group: gateway.envoyproxy.io, kind: Filter, name: f}}"), want: map[string]string{"app": "Filter ExtensionRef of GRPCRoute shop/app"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kind, section, rules := cmp.Or(tc.kind, "HTTPRoute"), cmp.Or(tc.section, "https"), cmp.Or(tc.rules, rule(""))
			inputs := inputOf(t, objects(t, tailscaleGateway, tc.gateway, routeTo(kind, "shop", "app", "{name: web, sectionName: "+section+"}", "True", rules))...)
			inputs.policiesKnown = true
			got := map[string]string{}
			routes := plan(inputs).report().Routes
			if len(routes) != 1 || len(routes[0].Backends) != 2 {
				t.Fatalf("want a route with two backends, got %+v", routes)
			}
			for _, b := range routes[0].Backends {
				if b.ProtectedBy != "" {
					got[b.Name] = b.ProtectedBy
				}
			}
			if tc.want == nil {
				tc.want = map[string]string{}
			}
			if diff := gocmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
