// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && tailnets

package e2e

import (
	"strings"
	"testing"
)

const (
	// polite has routes generated for the Services behind its own, with the defaults.
	polite     = "polite"
	politeHost = "web.quickstart.gateway.local"

	politeManifest = `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: ` + polite + `, namespace: quickstart}
spec:
  gatewayClassName: envoy
  listeners:
  - {name: http, protocol: HTTP, port: 80}
  - {name: https, protocol: HTTPS, port: 443, hostname: "*.gateway.local", tls: {certificateRefs: [{name: ` + polite + `}]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: ` + polite + `, namespace: quickstart}
spec:
  parentRefs: [{name: ` + polite + `, sectionName: http}]
  rules:
  - backendRefs: [{name: web, port: 80}]
---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleGateway
metadata: {name: ` + polite + `, namespace: quickstart}
spec:
  gatewayRef: {name: ` + polite + `}
  publishBackends: None
  tailnets:
  - name: quickstart
    proxy: {replicas: 1}
    vipService: {tags: ["tag:k8s"]}
    routeGeneration: {ingress: {}}
`

	// written is a user's route for a path of the host that a generated route has. It leads to the
	// prober.
	written = `apiVersion: v1
kind: Service
metadata: {name: written, namespace: quickstart}
spec:
  selector: {app: prober}
  ports: [{port: 80, targetPort: 8080}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: written, namespace: quickstart}
spec:
  parentRefs: [{name: ` + polite + `, sectionName: https}]
  hostnames: [` + politeHost + `]
  rules:
  - matches: [{path: {type: PathPrefix, value: /hostname}}]
    backendRefs: [{name: written, port: 80}]
`

	// allPaths matches the same requests as the generated route.
	allPaths = `[{"op":"replace","path":"/spec/rules/0/matches/0/path/value","value":"/"}]`

	// closedListener admits clients with a password.
	closedListener = `apiVersion: v1
kind: Secret
metadata: {name: polite-users, namespace: quickstart}
stringData: {.htpasswd: "ann:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ="}
---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: SecurityPolicy
metadata: {name: ` + polite + `, namespace: quickstart}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: ` + polite + `, sectionName: https}]
  basicAuth: {users: {name: polite-users}}
`
	password = "Authorization: Basic YW5uOnNlY3JldA=="
)

// prefersUserRoutes checks that users' routes take precedence over generated ones, and that a
// policy on the listener applies to generated routes.
func prefersUserRoutes(t *testing.T) {
	cert, key := certificate(t, politeHost)
	kubectl(t, "create", "secret", "tls", polite, "-n", namespace, "--cert="+cert, "--key="+key)
	apply(t, politeManifest)
	u := strings.Replace(tailnetOne.url(t, polite), "http:", "https:", 1)
	answers := func(path, want string, claims ...string) {
		t.Helper()
		eventually(t, patience, "/"+path+" returns "+want, func() string {
			// A refusal is an error, too.
			response, _ := labOutput(t, append([]string{"tailnet-curl", "--timeout=10s", "--cacert=" + cert, "--host=" + politeHost, u + path}, headers(claims)...)...)
			if !strings.Contains(response, want) {
				return "the response is " + response
			}
			return ""
		})
	}
	answers("hostname", "web-")
	conditionOf(t, "tailscalegateways", polite, "RoutesReady", "True", "RoutesAccepted", patience)

	// The longer path is that of the user's route.
	apply(t, written)
	answers("hostname", "prober")
	answers("", "web-")
	conditionOf(t, "tailscalegateways", polite, "RoutesReady", "True", "RoutesAccepted", patience)

	// A user's route with an equal path takes precedence, too, as long as it exists.
	patch(t, "httproute", "written", allPaths)
	answers("", "NOW: ")
	answers("hostname", "prober")
	message := conditionOf(t, "tailscalegateways", polite, "RoutesReady", "False", "RouteConflict", patience)
	if want := namespace + "/written"; !strings.Contains(message, want) {
		t.Errorf("the message does not name %s: %s", want, message)
	}
	kubectl(t, "delete", "httproute,service", "written", "-n", namespace)
	answers("hostname", "web-")

	apply(t, closedListener)
	answers("hostname", "401")
	answers("hostname", "web-", password)

	kubectl(t, "delete", "tailscalegateways", polite, "-n", namespace, "--timeout=3m")
	kubectl(t, "delete", "gateways.gateway.networking.k8s.io,httproutes,securitypolicies,secrets", polite, "polite-users", "-n", namespace, "--ignore-not-found")
	goneFrom(t, namespace, polite)
	if remaining := generatedFor(t, polite); remaining != "" {
		t.Errorf("routes are left: %s", remaining)
	}
}
