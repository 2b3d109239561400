// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && tailnets

package e2e

import (
	"strings"
	"testing"
)

// ratePolicy limits searches at the route that devices reach.
const ratePolicy = "examples/route-policy-rate.yaml"

// actingPolicy does each thing that no example does in the lab, some of them by a backend
// that says what it is told. Its last rule wants what ratePolicy has.
const actingPolicy = `apiVersion: v1
kind: Service
metadata: {name: clerk, namespace: quickstart}
spec:
  selector: {app: prober}
  ports: [{port: 80, targetPort: 8080}]
---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleServices
metadata: {name: clerk, namespace: quickstart}
spec:
  selector: {matchLabels: {app: web}}
  vipService: {ports: ["tcp:80"], tags: ["tag:k8s"]}
  backends: [{name: clerk, port: 80}]
---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleRoutePolicy
metadata: {name: various, namespace: quickstart}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: web}]
  rules:
  - name: moved
    matches: [{path: {type: Exact, value: /old}}]
    actions:
    - {type: Redirect, redirect: {path: /new, statusCode: 301}}
  - name: elsewhere
    matches: [{path: {type: Exact, value: /header}}]
    actions:
    - {type: Route, route: {backendRefs: [{name: clerk, port: 80}]}}
    - {type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: X-Desk, value: four}]}}
    - {type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: X-Served-By, value: clerk}]}}
  - name: hurried
    matches: [{path: {type: Exact, value: /dial}}]
    actions:
    - {type: Route, route: {backendRefs: [{name: clerk, port: 80}]}}
    - {type: Timeouts, timeouts: {request: 1ms}}
  - name: late
    matches: [{path: {type: PathPrefix, value: /search}}]
    actions: [{type: Deny}]
`

// policiesAct on requests of devices in all other ways.
func policiesAct(t *testing.T) {
	kubectl(t, "apply", "-f", ratePolicy)
	answers := func(path string, want ...string) {
		t.Helper()
		eventually(t, patience, "/"+path, func() string {
			// Some answers are errors of HTTP.
			said, _ := labOutput(t, "tailnet-curl", "-i", "--as=client", "--timeout=10s", "--host=web.example.com", tailnetOne.url(t, devices)+path)
			for _, w := range want {
				if !strings.Contains(said, w) {
					return "no " + w + " in " + said
				}
			}
			return ""
		})
	}
	answers("search", " 429 ")
	if missing := served(t, "client", "other"); missing != "" {
		t.Errorf("what is not limited: %s", missing)
	}
	apply(t, actingPolicy)
	answers("old", " 301 ", "Location: http://web.example.com/new")
	answers("header?key=X-Desk", " 200 ", "X-Served-By: clerk", "\n\nfour")
	// The clerk asks itself a hundred times.
	answers("dial?host=127.0.0.1&port=8080&request=hostname&tries=100", " 504 ")

	// Of two policies the older counts, and both tell.
	const conflicts = "{range .status.policyConflicts[*]}{.type} {.rule} {.otherPolicy} {.otherRule} {.prevails},{end}"
	for policy, want := range map[string]string{
		"rate":    "PriorityConflict search quickstart/various late true,",
		"various": "PriorityConflict late quickstart/rate search ,",
	} {
		eventually(t, patience, "conflicts of "+policy, func() string {
			if got := jsonpath(t, "tailscaleroutepolicies", policy, conflicts); got != want {
				return "it tells " + got
			}
			return ""
		})
	}
	answers("search", " 429 ")
	kubectl(t, "delete", "tailscaleroutepolicies", "rate", "various", "-n", namespace)
	kubectl(t, "delete", "tailscaleservices", "clerk", "-n", namespace, "--timeout=3m")
	kubectl(t, "delete", "service", "clerk", "-n", namespace)
	goneFrom(t, namespace, "clerk")
}
