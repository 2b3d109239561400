// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// routeTo a parent, of which the status says accepted, with more in its spec.
func routeTo(kind, namespace, name, parent, accepted, spec string) string {
	return fmt.Sprintf(`
apiVersion: gateway.networking.k8s.io/v1
kind: %[1]s
metadata: {name: %[3]s, namespace: %[2]s}
spec:
  parentRefs: [%[4]s]
  %[6]s
status:
  parents:
  - controllerName: gateway.envoyproxy.io/gatewayclass-controller
    parentRef: %[4]s
    conditions:
    - {type: Accepted, status: "%[5]s", reason: Accepted, message: "", lastTransitionTime: "2026-01-02T03:04:05Z"}
`, kind, namespace, name, parent, accepted, spec)
}

func TestReported(t *testing.T) {
	type routes = []tailnetv1alpha1.ReportedRoute
	cases := map[string]struct {
		reason string
		routes []string
		want   routes
	}{
		"None": {reason: "A Gateway without routes should have none."},
		"AllKinds": {
			reason: "Routes of all kinds should be told of, with the ports of the listeners that fit.",
			routes: []string{
				routeTo("UDPRoute", "shop", "dns", "{name: web}", "True", "rules: [{backendRefs: [{name: dns, port: 53}]}]"),
				routeTo("TLSRoute", "shop", "tls", "{name: web}", "True", "hostnames: [a.b]\n  rules: [{backendRefs: [{name: tls, port: 443}]}]"),
				routeTo("TCPRoute", "shop", "db", "{name: web, port: 5432}", "True", "rules: [{backendRefs: [{name: db, port: 5432}]}]"),
				routeTo("GRPCRoute", "shop", "rpc", "{name: web, sectionName: http}", "True", "rules: [{backendRefs: [{name: rpc, port: 90}]}]"),
				routeTo("HTTPRoute", "shop", "app", "{name: web}", "True", "rules: [{backendRefs: [{name: app, port: 80}]}]"),
			},
			want: routes{
				{Kind: "GRPCRoute", Namespace: "shop", Name: "rpc", Ports: []int32{80}, Backends: []tailnetv1alpha1.ReportedBackend{{Namespace: "shop", Name: "rpc", Port: 90}}},
				{Kind: "HTTPRoute", Namespace: "shop", Name: "app", Ports: []int32{80, 443}, Backends: []tailnetv1alpha1.ReportedBackend{{Namespace: "shop", Name: "app", Port: 80}}},
				{Kind: "TCPRoute", Namespace: "shop", Name: "db", Ports: []int32{5432}, Backends: []tailnetv1alpha1.ReportedBackend{{Namespace: "shop", Name: "db", Port: 5432}}},
				{Kind: "TLSRoute", Namespace: "shop", Name: "tls", Ports: []int32{8443}, Backends: []tailnetv1alpha1.ReportedBackend{{Namespace: "shop", Name: "tls", Port: 443}}},
				{Kind: "UDPRoute", Namespace: "shop", Name: "dns", Ports: []int32{53}, Backends: []tailnetv1alpha1.ReportedBackend{{Namespace: "shop", Name: "dns", Port: 53}}},
			},
		},
		"NotAccepted": {
			reason: "What the Gateway refuses, or another one accepted, is none of its routes.",
			routes: []string{
				routeTo("HTTPRoute", "shop", "refused", "{name: web}", "False", ""),
				routeTo("HTTPRoute", "shop", "elsewhere", "{name: other}", "True", ""),
				routeTo("HTTPRoute", "shop", "namesake", "{name: web, namespace: team}", "True", ""),
				routeTo("HTTPRoute", "shop", "mesh", "{name: web, group: '', kind: Service}", "True", ""),
			},
		},
		"Namespaces": {
			reason: "A listener takes routes of its own namespace, unless it says otherwise.",
			routes: []string{routeTo("HTTPRoute", "team", "app", "{name: web, namespace: shop}", "True", "")},
			want:   routes{{Kind: "HTTPRoute", Namespace: "team", Name: "app", Ports: []int32{443}}},
		},
		"Hosts": {
			reason: "A listener does not take hosts that it has nothing in common with.",
			routes: []string{
				routeTo("HTTPRoute", "shop", "inside", "{name: web}", "True", "hostnames: [a.example.com]"),
				routeTo("HTTPRoute", "shop", "outside", "{name: web}", "True", "hostnames: [example.org]"),
			},
			want: routes{
				{Kind: "HTTPRoute", Namespace: "shop", Name: "inside", Ports: []int32{80, 443}},
				{Kind: "HTTPRoute", Namespace: "shop", Name: "outside", Ports: []int32{80}},
			},
		},
		"ListenerSet": {
			reason: "Routes to a ListenerSet are the Gateway's.",
			routes: []string{routeTo("HTTPRoute", "team", "app", "{kind: ListenerSet, name: extra}", "True", "")},
			want:   routes{{Kind: "HTTPRoute", Namespace: "team", Name: "app", Ports: []int32{8080}}},
		},
		"Backends": {
			reason: "Backends are Services that the route may name, once each.",
			routes: []string{routeTo("HTTPRoute", "shop", "app", "{name: web, sectionName: http}", "True", `rules:
  - backendRefs:
    - {name: b, port: 80}
    - {name: b, port: 80, weight: 2}
    - {name: a, port: 81}
    - {name: a, port: 80}
    - {name: forbidden, namespace: team, port: 80}
    - {name: allowed, namespace: open, port: 80}
    - {group: gateway.tailscale.com, kind: TailscaleServices, name: ours, port: 80}`)},
			want: routes{{Kind: "HTTPRoute", Namespace: "shop", Name: "app", Ports: []int32{80}, Backends: []tailnetv1alpha1.ReportedBackend{
				{Namespace: "open", Name: "allowed", Port: 80},
				{Namespace: "shop", Name: "a", Port: 80}, {Namespace: "shop", Name: "a", Port: 81}, {Namespace: "shop", Name: "b", Port: 80},
			}}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			of := append([]string{tailscaleGateway, gateway, listenerSet}, tc.routes...)
			got := plan(inputOf(t, objects(t, of...)...)).report
			want := tailnetv1alpha1.GatewayReportSpec{Gateway: "web", Extension: tailnetv1alpha1.ReportedExtension{Version: "v1"}, Routes: tc.want}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("\n%s\nplan(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestReportedHostnames(t *testing.T) {
	const resolving = `
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleGateway
metadata: {name: web}
spec:
  gatewayRef: {name: web}
  tailnets: [{name: corp, splitDNS: {}}]
`
	const listeners = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web}
spec:
  gatewayClassName: envoy
  listeners:
  - {name: any, port: 80, protocol: HTTP}
  - {name: wild, port: 443, protocol: HTTPS, hostname: "*.example.com"}
  - {name: deep, port: 8443, protocol: HTTPS, hostname: "*.shop.example.com"}
  - {name: one, port: 9443, protocol: HTTPS, hostname: One.example.com}
  - {name: tls, port: 10443, protocol: TLS, hostname: "*.tls.example.com"}
`
	cases := map[string]struct {
		reason string
		object string
		route  string
		want   []string
	}{
		"NotAskedFor": {reason: "A report does not tell of hostnames that nobody resolves.", object: tailscaleGateway, route: routeTo("HTTPRoute", "shop", "app", "{name: web}", "True", "hostnames: [a.example.com]")},
		"Own":         {reason: "A route has its own hostnames, in lower case and once each.", object: resolving, route: routeTo("HTTPRoute", "shop", "app", "{name: web}", "True", "hostnames: [b.example.com, a.example.com]"), want: []string{"a.example.com", "b.example.com"}},
		"Listeners":   {reason: "A route without hostnames has those of its listeners.", object: resolving, route: routeTo("HTTPRoute", "shop", "app", "{name: web}", "True", ""), want: []string{"*.example.com", "*.shop.example.com", "one.example.com"}},
		"Any":         {reason: "A route that answers for any hostname has none.", object: resolving, route: routeTo("HTTPRoute", "shop", "app", "{name: web, sectionName: any}", "True", "")},
		"Narrower":    {reason: "Of two patterns the one that says more counts.", object: resolving, route: routeTo("HTTPRoute", "shop", "app", "{name: web, sectionName: one}", "True", `hostnames: ["*.example.com"]`), want: []string{"one.example.com"}},
		"BothWild":    {reason: "So it is with two wildcards.", object: resolving, route: routeTo("HTTPRoute", "shop", "app", "{name: web, sectionName: deep}", "True", `hostnames: ["*.example.com"]`), want: []string{"*.shop.example.com"}},
		"Beside":      {reason: "What the listener does not take is not answered for.", object: resolving, route: routeTo("HTTPRoute", "shop", "app", "{name: web, sectionName: deep}", "True", "hostnames: [a.shop.example.com, a.example.com]"), want: []string{"a.shop.example.com"}},
		"TLS":         {reason: "TLSRoutes have hostnames, too.", object: resolving, route: routeTo("TLSRoute", "shop", "app", "{name: web}", "True", "hostnames: [a.tls.example.com]"), want: []string{"a.tls.example.com"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := plan(inputOf(t, objects(t, tc.object, listeners, tc.route)...)).report.Routes
			if len(got) != 1 {
				t.Fatalf("\n%s\nplan(...): want one route, got %v", tc.reason, got)
			}
			if diff := cmp.Diff(tc.want, got[0].Hostnames); diff != "" {
				t.Errorf("\n%s\nplan(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestReportedOfOurs shows that what the extension made is no route of people's.
func TestReportedOfOurs(t *testing.T) {
	for _, label := range []string{ir.AnchorLabel, meta.LabelGenerated} {
		of := objects(t, tailscaleGateway, gateway, routeTo("HTTPRoute", "shop", "app", "{name: web}", "True", ""))
		of[2].SetLabels(map[string]string{label: "x"})
		if got := plan(inputOf(t, of...)).report.Routes; len(got) > 0 {
			t.Errorf("a route with label %s is told of: %v", label, got)
		}
	}
}
