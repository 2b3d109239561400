// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tailscale-gateway/tailscale-gateway/extension/gateways/routes"
)

// selects returns a tailnet with routes to the objects of a selector.
func selects(selector string) string {
	return fmt.Sprintf(`{name: prod, routeGeneration: {egress: {selector: %s, hostPattern: "*", pathPrefix: "/tailscale/{service}/", protocol: HTTP}}}`, selector)
}

const (
	// userEndpoints is a TailscaleEndpoints of a user, with two endpoints that have a Service,
	// and others.
	userEndpoints = `
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleEndpoints
metadata: {name: targets, labels: {expose: web}}
spec:
  tailnet: prod
  proxy: {connectionType: egress}
  ports: [{name: https, port: 8443, protocol: HTTPS}, {name: http, port: 8080, protocol: HTTP}]
  endpoints:
  - {name: api, tailscaleIP: 100.64.0.10}
  - {name: db, tailscaleIP: 100.64.0.20, port: 5432, protocol: TCP}
  - {name: secure, tailscaleFQDN: secure.prod.ts.net, port: 443, protocol: HTTPS}
  - {name: nameless, tailscaleIP: 100.64.0.30, port: 443, protocol: HTTPS}
  - {name: rpc, tailscaleFQDN: rpc.prod.ts.net, port: 9090, protocol: GRPC}
status:
  egressTargets:
  - {name: api/8080, address: "100.64.0.10:8080", protocol: HTTP, readyProxies: 1, service: "targets-api:8080"}
  - {name: secure/443, address: "secure.prod.ts.net:443", protocol: HTTPS, readyProxies: 1, service: "targets-secure:443"}
`

	userServices = `
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleServices
metadata: {name: web, labels: {expose: web}}
spec:
  selector: {matchLabels: {expose: web}}
  vipService: {name: "svc:shop", ports: ["tcp:443", "tcp:80"]}
  backends: [{name: app, port: 80}]
`

	// gatewayServices leads to the Gateway, and otherTailnet is in another tailnet.
	gatewayServices = `
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleServices
metadata: {name: front, labels: {expose: web}}
spec:
  selector: {matchLabels: {expose: web}}
  vipService: {ports: ["tcp:80"]}
  backends: [{kind: TailscaleGateway, name: web}]
---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleServices
metadata: {name: elsewhere, labels: {expose: web}}
spec:
  selector: {matchLabels: {app: none}}
  vipService: {ports: ["tcp:80"]}
  backends: [{name: app, port: 80}]
`
)

// until returns a manifest up to a line.
func until(manifest, line string) string {
	head, _, _ := strings.Cut(manifest, line)
	return head
}

func TestSelected(t *testing.T) {
	cases := map[string]struct {
		reason  string
		objects []string
		want    []string
	}{
		"Endpoints": {
			reason:  "Each endpoint in a spec with an HTTP protocol has a route to its Service.",
			objects: []string{joins(selects("{matchLabels: {expose: web}}")), userEndpoints},
			want: []string{
				"Egress */tailscale/api -> shop/targets-api:8080 Pending Waiting for Envoy Gateway",
				"Egress */tailscale/nameless -> - Refused It uses HTTPS, and the name in its certificate is unknown; set tailscaleFQDN",
				"Egress */tailscale/rpc -> - Pending Waiting for proxies to carry traffic to it",
				"Egress */tailscale/secure -> shop/targets-secure:443 Pending Waiting for Envoy Gateway",
			},
		},
		"EndpointsPorts": {
			reason: "An endpoint with separate ports has a route to the lowest one with an HTTP protocol.",
			objects: []string{joins(selects("{matchLabels: {expose: web}}")), until(userEndpoints, "  endpoints:") + `  endpoints:
  - {name: api, tailscaleIP: 100.64.0.10, ports: [{port: 22}, {port: 9000, protocol: HTTP}, {port: 8000, protocol: HTTP}]}
status:
  egressTargets:
  - {name: api/8000, address: "100.64.0.10:8000", protocol: HTTP, readyProxies: 1, service: "targets-api:8000"}
`},
			want: []string{"Egress */tailscale/api -> shop/targets-api:8000 Pending Waiting for Envoy Gateway"},
		},
		"Services": {
			reason:  "A TailscaleServices of the tailnet that leads to no Gateway has a route.",
			objects: []string{joins(selects("{matchLabels: {expose: web}}")), until(userEndpoints, "  endpoints:"), userServices, gatewayServices},
			want: []string{
				"Egress */tailscale/front -> - Refused It leads to a Gateway, which could create a routing loop; select the backends of that Gateway instead",
				"Egress */tailscale/shop -> shop/web:80 Pending Waiting for Envoy Gateway",
			},
		},
		"None": {
			reason:  "A selector that does not match, or no selector, selects nothing.",
			objects: []string{joins(selects("{matchLabels: {expose: other}}"), "{name: dev, routeGeneration: {egress: "+defaultEgress+"}}"), userEndpoints, userServices},
		},
		"Composed": {
			reason:  "A selector does not select objects that a TailscaleGateway composed.",
			objects: []string{joins(selects("{}")), found("prod", "True", "nas"), publishes("prod", "app")},
		},
		"FoundToo": {
			reason: "An endpoint that is also discovered has one route.",
			objects: []string{
				joins(`{name: prod, serviceDiscovery: {patterns: ['*'], port: 80}, routeGeneration: {egress: {selector: {}, hostPattern: "*", pathPrefix: "/tailscale/{service}/", protocol: HTTP}}}`),
				userEndpoints, userServices, found("prod", "True", "svc-shop", "secure", "nas"),
			},
			want: []string{
				"Egress */tailscale/api -> shop/targets-api:8080 Pending Waiting for Envoy Gateway",
				"Egress */tailscale/nameless -> - Refused It uses HTTPS, and the name in its certificate is unknown; set tailscaleFQDN",
				"Egress */tailscale/rpc -> - Pending Waiting for proxies to carry traffic to it",
				"Egress */tailscale/secure -> shop/targets-secure:443 Pending Waiting for Envoy Gateway",
				"Egress */tailscale/shop -> shop/web:80 Pending Waiting for Envoy Gateway",
				"Egress */tailscale/nas -> shop/web-prod-nas:80 Pending Waiting for Envoy Gateway",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := plan(inputOf(t, objects(t, append(tc.objects, gateway)...)...))
			if diff := cmp.Diff(tc.want, lines(got.routes)); diff != "" {
				t.Errorf("\n%s\nplan(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSelectedRetained checks that routes stay while the Service of their endpoint is unknown,
// or the selector is invalid.
func TestSelectedRetained(t *testing.T) {
	previous := inputOf(t, objects(t, gateway, joins(selects("{}")), userEndpoints)...)
	existing := generatedObjects(t, previous, plan(previous).routes)
	cases := map[string]struct {
		reason    string
		selector  string
		endpoints string
		want      []string
	}{
		"NoService":     {reason: "A route stays while its Service is unknown.", selector: "{}", endpoints: until(userEndpoints, "status:"), want: []string{"api", "secure"}},
		"WrongSelector": {reason: "Routes stay while the selector is invalid.", selector: "{matchExpressions: [{key: a, operator: Is}]}", endpoints: userEndpoints, want: []string{"api", "secure"}},
		"Gone":          {reason: "The route to a deleted endpoint is deleted.", selector: "{}", endpoints: until(userEndpoints, "  endpoints:")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inputs := inputOf(t, append(objects(t, gateway, joins(selects(tc.selector)), tc.endpoints), existing...)...)
			var got []string
			for _, w := range plan(inputs).routes {
				if w.Generate && w.Retained {
					got = append(got, w.PathPrefix[len("/tailscale/"):])
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nplan(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestServicesRoute checks that a route references a TailscaleServices as routes of users do,
// and has no host name for any host.
func TestServicesRoute(t *testing.T) {
	inputs := inputOf(t, objects(t, gateway, joins(selects("{}")), userEndpoints, userServices)...)
	for _, w := range plan(inputs).routes {
		if w.Service != "shop" {
			continue
		}
		r := routes.NewHTTPRoute(inputs.Object, w)
		want := gwapiv1.BackendObjectReference{
			Group: ptr.To[gwapiv1.Group]("gateway.tailscale.com"), Kind: ptr.To[gwapiv1.Kind]("TailscaleServices"),
			Namespace: ptr.To[gwapiv1.Namespace]("shop"), Name: "web", Port: ptr.To[gwapiv1.PortNumber](80),
		}
		if diff := cmp.Diff(want, r.Spec.Rules[0].BackendRefs[0].BackendObjectReference); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
		if len(r.Spec.Hostnames) > 0 {
			t.Errorf("hostnames %v, want none", r.Spec.Hostnames)
		}
		return
	}
	t.Error("no route to the TailscaleServices")
}
