// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"maps"
	"testing"

	"sigs.k8s.io/yaml"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
)

// TestRefusedTailnets checks that the cache keeps and notices what a status says of tailnets.
func TestRefusedTailnets(t *testing.T) {
	const spec = `
metadata: {name: gw, namespace: shop, uid: u, generation: 1}
spec: {gatewayRef: {name: gw}, tailnets: [{name: corp}, {name: staff, tailscaleTailnetRef: {name: people}}]}
`
	parsed := func(status string) *gatewayv1alpha1.TailscaleGateway {
		t.Helper()
		o := &gatewayv1alpha1.TailscaleGateway{}
		if err := yaml.UnmarshalStrict([]byte(spec+status), o); err != nil {
			t.Fatal(err)
		}
		if _, err := Strip(o); err != nil {
			t.Fatal(err)
		}
		return o
	}
	status := func(reason string) string {
		return `status:
  services: [{name: s, tailnet: corp, target: t, ready: true}]
  conditions: [{type: TailnetsValid, status: "False", reason: ` + reason + `, message: refused, lastTransitionTime: "2026-01-01T00:00:00Z"}]
  dependencyStatus: [{kind: Gateway, name: corp, ready: false}, {kind: TailscaleTailnet, name: corp, ready: true}, {kind: TailscaleTailnet, name: people, ready: false}]
`
	}
	none, refused, notFound := parsed(""), parsed(status("NamespaceNotAllowed")), parsed(status("TailnetNotFound"))
	if got := RefusedTailnets(none); len(got) > 0 {
		t.Errorf("without a status: want none, got %v", got)
	}
	if got := RefusedTailnets(refused); !maps.Equal(got, map[string]bool{"staff": true}) {
		t.Errorf("want the entry of the tailnet that does not allow the namespace, got %v", got)
	}
	if got := RefusedTailnets(notFound); len(got) > 0 {
		t.Errorf("a tailnet that is gone refuses nobody, got %v", got)
	}
	if Same(none, refused) || !Same(none, notFound) || len(refused.Status.Services) > 0 {
		t.Errorf("want that only a refusal is a change, and that nothing else of the status is kept: %+v", refused.Status)
	}
}

// TestChosenGateway checks that the cache keeps and notices the Gateway of an object that names none.
func TestChosenGateway(t *testing.T) {
	parsed := func(spec, status string) *gatewayv1alpha1.TailscaleGateway {
		t.Helper()
		o := &gatewayv1alpha1.TailscaleGateway{}
		if err := yaml.UnmarshalStrict([]byte("metadata: {name: gw, namespace: shop, uid: u, generation: 1}\nspec: {"+spec+"}\nstatus: {"+status+"}\n"), o); err != nil {
			t.Fatal(err)
		}
		if _, err := Strip(o); err != nil {
			t.Fatal(err)
		}
		return o
	}
	const chosen = "gatewayRef: {name: eg}"
	if got := parsed("", chosen).GatewayName(); got.Namespace != "shop" || got.Name != "eg" {
		t.Errorf("want Gateway shop/eg of the status, got %v", got)
	}
	if got := parsed("gatewayRef: {name: mine, namespace: infra}", chosen).GatewayName(); got.Namespace != "infra" || got.Name != "mine" {
		t.Errorf("want Gateway infra/mine of the spec, got %v", got)
	}
	if Same(parsed("", ""), parsed("", chosen)) || !Same(parsed("", chosen), parsed("", chosen)) {
		t.Error("want that a Gateway that is chosen is a change, and nothing else")
	}
}
