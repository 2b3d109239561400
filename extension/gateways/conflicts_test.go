// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOccupied checks which routes of users prevent a generated route.
func TestOccupied(t *testing.T) {
	const (
		all     = `{hostPattern: "{service}.local", pathPrefix: "/", protocol: HTTP}`
		cart    = `{hostPattern: "{service}.local", pathPrefix: "/shop.Cart/", protocol: HTTP}`
		https   = `{hostPattern: "{service}.example.com", pathPrefix: "/", protocol: HTTPS}`
		narrow  = `{hostPattern: "*.example.com", pathPrefix: "/", protocol: HTTPS}`
		pending = "-> shop/web-prod-nas:80 Pending Waiting for Envoy Gateway"
		refused = " already; no route is generated for the device nas of tailnet prod"
	)
	cases := map[string]struct {
		reason string
		egress string
		kind   string
		spec   string
		want   string
	}{
		"GRPCAll": {
			reason: "A GRPCRoute without a method occupies all paths of its host.",
			egress: all, kind: "GRPCRoute", spec: "hostnames: [nas.local]\n  rules: [{backendRefs: [{name: app, port: 80}]}]",
			want: "Egress nas.local/ -> - Conflict GRPCRoute shop/mine has nas.local/" + refused,
		},
		"GRPCService": {
			reason: "A GRPCRoute with a service occupies the service's prefix.",
			egress: cart, kind: "GRPCRoute", spec: "hostnames: [nas.local]\n  rules: [{matches: [{method: {service: shop.Cart}}]}]",
			want: "Egress nas.local/shop.Cart -> - Conflict GRPCRoute shop/mine has nas.local/shop.Cart" + refused,
		},
		"GRPCOtherService": {
			reason: "Another service's prefix is free.",
			egress: cart, kind: "GRPCRoute", spec: "hostnames: [nas.local]\n  rules: [{matches: [{method: {service: shop.Order}}]}]",
			want: "Egress nas.local/shop.Cart " + pending,
		},
		"GRPCMethod": {
			reason: "A method of a service is an exact path, which comes first anyway.",
			egress: cart, kind: "GRPCRoute", spec: "hostnames: [nas.local]\n  rules: [{matches: [{method: {service: shop.Cart, method: Add}}]}]",
			want: "Egress nas.local/shop.Cart " + pending,
		},
		"GRPCExpression": {
			reason: "A regular expression is not a prefix.",
			egress: cart, kind: "GRPCRoute", spec: "hostnames: [nas.local]\n  rules: [{matches: [{method: {type: RegularExpression, service: shop.Cart}}]}]",
			want: "Egress nas.local/shop.Cart " + pending,
		},
		"GRPCMethodAlone": {
			reason: "A method of any service leaves the other requests free.",
			egress: all, kind: "GRPCRoute", spec: "hostnames: [nas.local]\n  rules: [{matches: [{method: {method: Add}}]}]",
			want: "Egress nas.local/ " + pending,
		},
		"GRPCHeaders": {
			reason: "A route with a header leaves requests without the header free.",
			egress: all, kind: "GRPCRoute", spec: "hostnames: [nas.local]\n  rules: [{matches: [{headers: [{name: a, value: b}]}]}]",
			want: "Egress nas.local/ " + pending,
		},
		"TCP": {
			reason: "A TCPRoute occupies no host and path.",
			egress: all, kind: "TCPRoute", spec: "rules: [{backendRefs: [{name: app, port: 80}]}]",
			want: "Egress nas.local/ " + pending,
		},
		"CatchAll": {
			reason: "A route for any host leaves individual hosts free.",
			egress: all, kind: "HTTPRoute", spec: "rules: [{backendRefs: [{name: app, port: 80}]}]",
			want: "Egress nas.local/ " + pending,
		},
		"WildcardOfListener": {
			reason: "The listener narrows the hosts of a route.",
			egress: narrow, kind: "HTTPRoute", spec: "hostnames: ['*.com']\n  rules: [{backendRefs: [{name: app, port: 80}]}]",
			want: "Egress *.example.com/ -> - Conflict HTTPRoute shop/mine has *.example.com/" + refused,
		},
		"HostInWildcard": {
			reason: "A wildcard leaves individual hosts free.",
			egress: https, kind: "HTTPRoute", spec: "hostnames: ['*.com']\n  rules: [{backendRefs: [{name: app, port: 80}]}]",
			want: "Egress nas.example.com/ " + pending,
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
