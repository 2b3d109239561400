// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestClaimed shows which of people's routes keep a generated one from being made.
func TestClaimed(t *testing.T) {
	const (
		all     = `{hostPattern: "{service}.local", pathPrefix: "/", protocol: HTTP}`
		cart    = `{hostPattern: "{service}.local", pathPrefix: "/shop.Cart/", protocol: HTTP}`
		https   = `{hostPattern: "{service}.example.com", pathPrefix: "/", protocol: HTTPS}`
		narrow  = `{hostPattern: "*.example.com", pathPrefix: "/", protocol: HTTPS}`
		made    = "-> shop/web-prod-nas:80 Pending Waiting for Envoy Gateway"
		refused = " already, so the device nas of tailnet prod gets no route"
	)
	cases := map[string]struct {
		reason string
		egress string
		kind   string
		spec   string
		want   string
	}{
		"GRPCAll": {
			reason: "A GRPCRoute that asks for no method has all paths of its host.",
			egress: all, kind: "GRPCRoute", spec: "hostnames: [nas.local]\n  rules: [{backendRefs: [{name: app, port: 80}]}]",
			want: "Egress nas.local/ -> - Conflict GRPCRoute shop/mine has nas.local/" + refused,
		},
		"GRPCService": {
			reason: "One that asks for a service has the service's prefix.",
			egress: cart, kind: "GRPCRoute", spec: "hostnames: [nas.local]\n  rules: [{matches: [{method: {service: shop.Cart}}]}]",
			want: "Egress nas.local/shop.Cart -> - Conflict GRPCRoute shop/mine has nas.local/shop.Cart" + refused,
		},
		"GRPCOtherService": {
			reason: "Another service's prefix is free.",
			egress: cart, kind: "GRPCRoute", spec: "hostnames: [nas.local]\n  rules: [{matches: [{method: {service: shop.Order}}]}]",
			want: "Egress nas.local/shop.Cart " + made,
		},
		"GRPCMethod": {
			reason: "A method of a service is an exact path, which comes first anyway.",
			egress: cart, kind: "GRPCRoute", spec: "hostnames: [nas.local]\n  rules: [{matches: [{method: {service: shop.Cart, method: Add}}]}]",
			want: "Egress nas.local/shop.Cart " + made,
		},
		"GRPCExpression": {
			reason: "So does a regular expression.",
			egress: cart, kind: "GRPCRoute", spec: "hostnames: [nas.local]\n  rules: [{matches: [{method: {type: RegularExpression, service: shop.Cart}}]}]",
			want: "Egress nas.local/shop.Cart " + made,
		},
		"GRPCMethodAlone": {
			reason: "A method of any service leaves other requests.",
			egress: all, kind: "GRPCRoute", spec: "hostnames: [nas.local]\n  rules: [{matches: [{method: {method: Add}}]}]",
			want: "Egress nas.local/ " + made,
		},
		"GRPCHeaders": {
			reason: "Who asks for a header leaves requests without.",
			egress: all, kind: "GRPCRoute", spec: "hostnames: [nas.local]\n  rules: [{matches: [{headers: [{name: a, value: b}]}]}]",
			want: "Egress nas.local/ " + made,
		},
		"TCP": {
			reason: "A route without hosts and paths has none.",
			egress: all, kind: "TCPRoute", spec: "rules: [{backendRefs: [{name: app, port: 80}]}]",
			want: "Egress nas.local/ " + made,
		},
		"CatchAll": {
			reason: "A route for any host leaves each host to who asks for it.",
			egress: all, kind: "HTTPRoute", spec: "rules: [{backendRefs: [{name: app, port: 80}]}]",
			want: "Egress nas.local/ " + made,
		},
		"WildcardOfListener": {
			reason: "Hosts count as far as the listener takes them.",
			egress: narrow, kind: "HTTPRoute", spec: "hostnames: ['*.com']\n  rules: [{backendRefs: [{name: app, port: 80}]}]",
			want: "Egress *.example.com/ -> - Conflict HTTPRoute shop/mine has *.example.com/" + refused,
		},
		"HostInWildcard": {
			reason: "A host is not taken by who has a wildcard.",
			egress: https, kind: "HTTPRoute", spec: "hostnames: ['*.com']\n  rules: [{backendRefs: [{name: app, port: 80}]}]",
			want: "Egress nas.example.com/ " + made,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := plan(inputOf(t, objects(t, gateway, joins(discovers("prod", "HTTP", tc.egress)), found("prod", "True", "nas"),
				routeTo(tc.kind, "shop", "mine", "{name: web}", "True", tc.spec))...))
			if diff := cmp.Diff([]string{tc.want}, lines(got.routes)); diff != "" {
				t.Errorf("\n%s\nplan(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
