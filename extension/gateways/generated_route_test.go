// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tailscale-gateway/tailscale-gateway/extension/gateways/routes"
)

// TestHTTPRoute checks all fields of a route to a service with TLS.
func TestHTTPRoute(t *testing.T) {
	inputs := inputOf(t, objects(t, gateway, joins(discovers("prod", "HTTPS", defaultEgress)), found("prod", "True", "svc-grafana"))...)
	w := plan(inputs).routes[0]
	want := objects(t, `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: web-prod-egress-svc-grafana-a5d2c5c8
  labels:
    app.kubernetes.io/managed-by: tailscale-gateway-extension
    gateway.tailscale.com/gateway: web
    gateway.tailscale.com/gateway-namespace: shop
    gateway.tailscale.com/gateway-tailnet: prod
    gateway.tailscale.com/generated: egress
    gateway.tailscale.com/endpoint: svc-grafana
  annotations:
    gateway.tailscale.com/description: "Generated for TailscaleGateway shop/web, which sends grafana.tailscale.local/tailscale/grafana to the service grafana of tailnet prod. To change it, edit routeGeneration of tailnet prod there: changes to this object are undone."
  ownerReferences:
  - {apiVersion: gateway.tailscale.com/v1alpha1, kind: TailscaleGateway, name: web, uid: TailscaleGateway/shop/web}
spec:
  parentRefs:
  - {group: gateway.networking.k8s.io, kind: Gateway, namespace: shop, name: web, sectionName: http}
  hostnames: [grafana.tailscale.local]
  rules:
  - matches: [{path: {type: PathPrefix, value: /tailscale/grafana}}]
    filters:
    - type: URLRewrite
      urlRewrite: {hostname: grafana.prod.ts.net, path: {type: ReplacePrefixMatch, replacePrefixMatch: /}}
    backendRefs: [{group: "", kind: Service, namespace: shop, name: web-prod-svc-grafana, port: 80, weight: 1}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: x}
spec:
  targetRefs: [{group: "", kind: Service, name: web-prod-svc-grafana}]
  validation: {hostname: grafana.prod.ts.net, wellKnownCACertificates: System}
`)
	want[0].SetUID("")
	if diff := cmp.Diff(want[0], client.Object(routes.NewHTTPRoute(inputs.Object, w))); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	policy, ok := want[1].(*gwapiv1.BackendTLSPolicy)
	if !ok {
		t.Fatal("the policy is of another kind")
	}
	if diff := cmp.Diff(policy.Spec, routes.NewTLSPolicy(inputs.Object, w).Spec); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(routes.NewHTTPRoute(inputs.Object, w).ObjectMeta, routes.NewTLSPolicy(inputs.Object, w).ObjectMeta); diff != "" {
		t.Errorf("the metadata of the policy differs from the route's:\n%s", diff)
	}
}

// TestGRPCRoute checks that a Service behind a GRPCRoute has a GRPCRoute for all methods, and a
// Service behind both kinds at the same port an HTTPRoute.
func TestGRPCRoute(t *testing.T) {
	inputs := inputOf(t, objects(t, gateway, joins(sharesServices("prod", defaultIngress)),
		routeTo("GRPCRoute", "shop", "rpc", "{name: web}", "True", "rules: [{backendRefs: [{name: rpc, port: 90}, {name: both, port: 80}]}]"),
		routeTo("HTTPRoute", "shop", "app", "{name: web, sectionName: http}", "True", "rules: [{backendRefs: [{name: both, port: 80}]}]"))...)
	kinds := map[string]string{}
	for _, w := range plan(inputs).routes {
		kinds[w.Service] = w.Kind
		if w.Service != "rpc" {
			continue
		}
		got, ok := routes.New(inputs.Object, w).(*gwapiv1.GRPCRoute)
		if !ok {
			t.Fatalf("%T, want a GRPCRoute", routes.New(inputs.Object, w))
		}
		want := objects(t, `
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: x}
spec:
  parentRefs:
  - {group: gateway.networking.k8s.io, kind: Gateway, namespace: shop, name: web, sectionName: http}
  hostnames: [rpc.prod.gateway.local]
  rules:
  - backendRefs: [{group: "", kind: Service, namespace: shop, name: rpc, port: 90, weight: 1}]
`)[0]
		if diff := cmp.Diff(routeSpec(want), routeSpec(got)); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
		inputs.Generated = append(inputs.Generated, got)
	}
	if diff := cmp.Diff(map[string]string{"rpc": routes.KindGRPCRoute, "both": routes.KindHTTPRoute}, kinds); diff != "" {
		t.Errorf("kinds: -want, +got:\n%s", diff)
	}
}
