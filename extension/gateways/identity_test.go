// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	// identifies is a TailscaleGateway that configures identity headers on listeners of a
	// Gateway in another namespace.
	identifies = `
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleGateway
metadata: {name: web}
spec:
  gatewayRef: {name: edge, namespace: team}
  tailnets:
  - {name: prod, listeners: [{name: z, identity: Headers}, {name: addresses, identity: ProxyProtocol}]}
  - {name: dev, listeners: [{name: z, identity: Headers}, {name: a, identity: Headers}]}
`

	// identityGrant permits it.
	identityGrant = `
apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {name: identity, namespace: team}
spec:
  from: [{group: gateway.tailscale.com, kind: TailscaleGateway, namespace: shop}]
  to: [{group: gateway.networking.k8s.io, kind: Gateway, name: edge}]
`
)

func TestUnverifiedListeners(t *testing.T) {
	cases := map[string]struct {
		reason  string
		objects []string
		want    []string
	}{
		"Own":       {reason: "A Gateway of the same namespace needs no grant.", objects: []string{joins("{name: prod, listeners: [{name: http, identity: Headers}]}")}},
		"NoGrant":   {reason: "Listeners of another namespace are reported, each once.", objects: []string{identifies}, want: []string{"a", "z"}},
		"Granted":   {reason: "With a grant no listeners are reported.", objects: []string{identifies, identityGrant}},
		"NoHeaders": {reason: "A TailscaleGateway without identity headers needs no grant.", objects: []string{tailscaleGateway}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, plan(inputOf(t, objects(t, tc.objects...)...)).report().ListenersWithoutIdentity); diff != "" {
				t.Errorf("\n%s\nplan(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestGranted checks that routes of a Gateway in another namespace are reported and generated
// only with a ReferenceGrant there.
func TestGranted(t *testing.T) {
	shares := `
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleGateway
metadata: {name: web}
spec:
  gatewayRef: {name: edge, namespace: team}
  tailnets:
  - ` + discovers("prod", "HTTP", defaultEgress) + "\n"
	edge := strings.ReplaceAll(gateway, "{name: web}", "{name: edge, namespace: team}")
	app := routeTo("HTTPRoute", "team", "app", "{name: edge, sectionName: http}", "True", "rules: [{backendRefs: [{name: app, port: 80}]}]")
	elsewhere := strings.Replace(identityGrant, "namespace: team", "namespace: shop", 1)
	cases := map[string]struct {
		reason    string
		grants    []string
		routes    int
		generated int
	}{
		"NoGrant":   {reason: "Without a grant nothing is reported."},
		"Elsewhere": {reason: "A grant in the namespace of the TailscaleGateway does not count.", grants: []string{elsewhere}},
		"Granted":   {reason: "A grant in the namespace of the Gateway permits it.", grants: []string{identityGrant}, routes: 1, generated: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := plan(inputOf(t, objects(t, append([]string{shares, edge, app, found("prod", "True", "svc-db")}, tc.grants...)...)...)).report()
			if len(got.Routes) != tc.routes || len(got.GeneratedRoutes) != tc.generated {
				t.Errorf("%s\nreported: %+v, generated: %+v", tc.reason, got.Routes, got.GeneratedRoutes)
			}
		})
	}
}
