// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

func TestParseRoute(t *testing.T) {
	ours := func(port int32) ir.BackendRef {
		return ir.BackendRef{Kind: ir.BackendServices, NamespacedName: name("web"), Port: port, Weight: 1}
	}
	cases := map[string]struct {
		reason  string
		objects string
		key     ir.RouteKey
		want    *ir.Route
	}{
		"HTTP": {
			reason: "Names and matches should be kept; the index of references should start at 0 and include skipped ones; Gateways of ListenerSets should be included.",
			objects: `
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: more}
spec: {parentRef: {name: gw2, namespace: infra}, listeners: [{name: a, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, generation: 7}
spec:
  parentRefs: [{name: gw, namespace: infra, sectionName: https, port: 8443}, {name: gw}, {kind: ListenerSet, name: more}, {kind: ListenerSet, name: unknown}, {group: "", kind: Service, name: mesh}]
  rules:
  - name: first
    matches:
    - {path: {type: Exact, value: /a}, method: GET, headers: [{name: X-B, value: b, type: RegularExpression}, {name: X-A, value: a}], queryParams: [{name: Q, value: "1"}, {name: p, value: x, type: RegularExpression}]}
    - {path: {value: /b}}
    filters:
    - {type: RequestHeaderModifier, requestHeaderModifier: {remove: [X]}}
    - {type: RequestMirror, requestMirror: {backendRef: {group: gateway.tailscale.com, kind: TailscaleServices, name: web, port: 81}}}
    sessionPersistence: {sessionName: s}
    backendRefs:
    - {name: app, port: 8080, weight: 0}
    - {group: gateway.tailscale.com, kind: TailscaleEndpoints, name: edge, namespace: net, port: 5432, weight: 3}
    - {group: gateway.envoyproxy.io, kind: Backend, name: other}
    - {group: gateway.tailscale.com, kind: TailscaleServices, name: web, port: 80, filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: X-To, value: web}]}}, {type: URLRewrite, urlRewrite: {hostname: web.example.com, path: {type: ReplaceFullPath, replaceFullPath: /}}}, {type: RequestMirror}, {type: ResponseHeaderModifier, responseHeaderModifier: {remove: [Host]}}]}
  - backendRefs: [{name: app, port: 8080}]
`,
			key: ir.RouteKey{Kind: ir.KindHTTPRoute, NamespacedName: name("web")},
			want: &ir.Route{
				Generation: 7,
				Gateways:   []types.NamespacedName{{Namespace: "infra", Name: "gw"}, {Namespace: "infra", Name: "gw2"}, name("gw")},
				Info:       ir.RouteInfo{Listeners: []string{"Gateway infra/gw https port 8443", "Gateway shop/gw", "ListenerSet shop/more", "ListenerSet shop/unknown"}},
				Rules: []ir.Rule{
					{
						Name:      "first",
						Exclusive: true,
						Matches: []ir.Match{
							{Path: "/a", PathType: "Exact", Method: "GET", Headers: []string{"x-a=a", "x-b=~b"}, Query: []string{"Q=1", "p=~x"}},
							{Path: "/b", PathType: "PathPrefix"},
						},
						Backends: []ir.BackendRef{
							{Kind: ir.BackendService, NamespacedName: name("app"), Port: 8080},
							{Kind: ir.BackendEndpoints, NamespacedName: types.NamespacedName{Namespace: "net", Name: "edge"}, Port: 5432, Weight: 3, Index: 1},
							{Kind: ir.BackendOther, NamespacedName: name("other"), Weight: 1, Index: 2},
							{Kind: ir.BackendServices, NamespacedName: name("web"), Port: 80, Weight: 1, Changes: &ir.Changes{Request: ir.HeaderChange{Set: []ir.Header{{Name: "X-To", Value: "web"}}}, Hostname: "web.example.com", Refused: []string{"URLRewrite of a path", "RequestMirror", `ResponseHeaderModifier: "Host" cannot be changed`}}, Index: 3},
						},
						Mirrors: []ir.BackendRef{{Kind: ir.BackendServices, NamespacedName: name("web"), Port: 81, Weight: 1, Index: 1}},
					},
					{Backends: []ir.BackendRef{{Kind: ir.BackendService, NamespacedName: name("app"), Port: 8080, Weight: 1}}},
				},
			},
		},
		"GRPC": {
			reason: "Methods should be converted as by Envoy Gateway.",
			objects: `
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: web}
spec:
  rules:
  - matches:
    - {method: {service: s, method: m}, headers: [{name: X-A, value: a}]}
    - {method: {service: s}}
    - {method: {method: m}}
    - {method: {type: RegularExpression, method: m}}
    - {method: {type: RegularExpression, service: s}}
    - {}
    backendRefs: [{group: gateway.tailscale.com, kind: TailscaleServices, name: web, port: 80}]
`,
			key: ir.RouteKey{Kind: ir.KindGRPCRoute, NamespacedName: name("web")},
			want: &ir.Route{Rules: []ir.Rule{{
				Matches: []ir.Match{
					{Path: "/s/m", PathType: "Exact", Headers: []string{"x-a=a"}},
					{Path: "/s", PathType: "PathPrefix"},
					{Headers: []string{":path=*/m"}},
					{Path: `/(?i)\.?[a-z_][a-z_0-9]*(\.[a-z_][a-z_0-9]*)*/m`, PathType: "RegularExpression"},
					{Path: `/s/[A-Za-z_][A-Za-z_0-9]*`, PathType: "RegularExpression"},
					{},
				},
				Backends: []ir.BackendRef{ours(80)},
			}}},
		},
		"TLS": {
			reason: "L4 routes should have one rule with the backends of all rules.",
			objects: `
apiVersion: gateway.networking.k8s.io/v1
kind: TLSRoute
metadata: {name: web}
spec:
  hostnames: [a.example.com]
  rules:
  - backendRefs: [{name: app, port: 8080}]
  - backendRefs: [{group: gateway.tailscale.com, kind: TailscaleServices, name: web, port: 80}]
`,
			key: ir.RouteKey{Kind: ir.KindTLSRoute, NamespacedName: name("web")},
			want: &ir.Route{Info: ir.RouteInfo{Hostnames: []string{"a.example.com"}}, Rules: []ir.Rule{{Exclusive: true, Backends: []ir.BackendRef{
				{Kind: ir.BackendService, NamespacedName: name("app"), Port: 8080, Weight: 1},
				{Kind: ir.BackendServices, NamespacedName: name("web"), Port: 80, Weight: 1, Index: 1},
			}}}},
		},
		"UDP": {
			reason: "UDPRoutes should have one rule with the backends of all rules.",
			objects: `
apiVersion: gateway.networking.k8s.io/v1
kind: UDPRoute
metadata: {name: web}
spec: {rules: [{backendRefs: [{group: gateway.tailscale.com, kind: TailscaleServices, name: web, port: 80}]}]}
`,
			key:  ir.RouteKey{Kind: ir.KindUDPRoute, NamespacedName: name("web")},
			want: &ir.Route{Rules: []ir.Rule{{Backends: []ir.BackendRef{ours(80)}}}},
		},
		"NotOurs": {
			reason: "A route without a backend of our kinds should not be kept.",
			objects: `
apiVersion: gateway.networking.k8s.io/v1
kind: TCPRoute
metadata: {name: web}
spec: {rules: [{backendRefs: [{name: app, port: 80}]}]}
`,
			key: ir.RouteKey{Kind: ir.KindTCPRoute, NamespacedName: name("web")},
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			got := snapshotOf(t, tc.objects).Route(tc.key)
			if tc.want != nil {
				tc.want.Key = tc.key
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got\n%s", tc.reason, diff)
			}
		})
	}
}
