// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// routeTo returns a route with a parent, the status of its Accepted condition, and further
// fields of the spec.
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
		"None": {reason: "A Gateway without routes has none."},
		"AllKinds": {
			reason: "Routes of all kinds are reported, with the ports of matching listeners.",
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
			reason: "Routes that the Gateway refused, or another Gateway accepted, are not reported.",
			routes: []string{
				routeTo("HTTPRoute", "shop", "refused", "{name: web}", "False", ""),
				routeTo("HTTPRoute", "shop", "elsewhere", "{name: other}", "True", ""),
				routeTo("HTTPRoute", "shop", "namesake", "{name: web, namespace: team}", "True", ""),
				routeTo("HTTPRoute", "shop", "mesh", "{name: web, group: '', kind: Service}", "True", ""),
			},
		},
		"Namespaces": {
			reason: "A listener accepts routes of the Gateway's namespace by default.",
			routes: []string{routeTo("HTTPRoute", "team", "app", "{name: web, namespace: shop}", "True", "")},
			want:   routes{{Kind: "HTTPRoute", Namespace: "team", Name: "app", Ports: []int32{443}}},
		},
		"Hosts": {
			reason: "A listener does not accept hosts that do not match its host name.",
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
			reason: "Routes of a ListenerSet are reported.",
			routes: []string{routeTo("HTTPRoute", "team", "app", "{kind: ListenerSet, name: extra}", "True", "")},
			want:   routes{{Kind: "HTTPRoute", Namespace: "team", Name: "app", Ports: []int32{8080}}},
		},
		"Backends": {
			reason: "Backends are permitted Services, once each.",
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
			manifests := append([]string{tailscaleGateway, gateway, listenerSet}, tc.routes...)
			got := plan(inputOf(t, objects(t, manifests...)...)).report()
			want := tailnetv1alpha1.GatewayReportSpec{Gateway: "web", Extension: tailnetv1alpha1.ReportedExtension{Version: "v1"}, Routes: tc.want}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(tailnetv1alpha1.ReportedRoute{}, "UID")); diff != "" {
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
		"NotRequested": {reason: "A report has no host names if no tailnet resolves them.", object: tailscaleGateway, route: routeTo("HTTPRoute", "shop", "app", "{name: web}", "True", "hostnames: [a.example.com]")},
		"Own":          {reason: "Host names of a route are reported in lower case, once each.", object: resolving, route: routeTo("HTTPRoute", "shop", "app", "{name: web}", "True", "hostnames: [b.example.com, a.example.com]"), want: []string{"a.example.com", "b.example.com"}},
		"Listeners":    {reason: "A route without host names has those of its listeners.", object: resolving, route: routeTo("HTTPRoute", "shop", "app", "{name: web}", "True", ""), want: []string{"*.example.com", "*.shop.example.com", "one.example.com"}},
		"Any":          {reason: "A route for any host has none.", object: resolving, route: routeTo("HTTPRoute", "shop", "app", "{name: web, sectionName: any}", "True", "")},
		"Narrower":     {reason: "Of two patterns the more specific one counts.", object: resolving, route: routeTo("HTTPRoute", "shop", "app", "{name: web, sectionName: one}", "True", `hostnames: ["*.example.com"]`), want: []string{"one.example.com"}},
		"BothWild":     {reason: "Of two wildcards the more specific one counts.", object: resolving, route: routeTo("HTTPRoute", "shop", "app", "{name: web, sectionName: deep}", "True", `hostnames: ["*.example.com"]`), want: []string{"*.shop.example.com"}},
		"Beside":       {reason: "Host names that the listener does not accept are not reported.", object: resolving, route: routeTo("HTTPRoute", "shop", "app", "{name: web, sectionName: deep}", "True", "hostnames: [a.shop.example.com, a.example.com]"), want: []string{"a.shop.example.com"}},
		"TLS":          {reason: "Host names of TLSRoutes are reported.", object: resolving, route: routeTo("TLSRoute", "shop", "app", "{name: web}", "True", "hostnames: [a.tls.example.com]"), want: []string{"a.tls.example.com"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := plan(inputOf(t, objects(t, tc.object, listeners, tc.route)...)).report().Routes
			if len(got) != 1 {
				t.Fatalf("\n%s\nplan(...): want one route, got %v", tc.reason, got)
			}
			if diff := cmp.Diff(tc.want, got[0].Hostnames); diff != "" {
				t.Errorf("\n%s\nplan(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestReportedWithoutGenerated checks that generated routes are not reported as routes of
// users.
func TestReportedWithoutGenerated(t *testing.T) {
	for _, label := range []string{ir.PlaceholderLabel, meta.LabelGenerated} {
		objs := objects(t, tailscaleGateway, gateway, routeTo("HTTPRoute", "shop", "app", "{name: web}", "True", ""))
		objs[2].SetLabels(map[string]string{label: "x"})
		if got := plan(inputOf(t, objs...)).report().Routes; len(got) > 0 {
			t.Errorf("a route with label %s is reported: %v", label, got)
		}
	}
}
