// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && tailnets

package e2e

import (
	"strings"
	"testing"
)

const (
	// ratePolicy limits searches at the route that devices reach.
	ratePolicy = "examples/route-policy-rate.yaml"

	// rulePolicy lets operators of the tailnet have /orders, and has a rule with policies
	// of Envoy Gateway handle what others ask for.
	rulePolicy = "examples/route-policy-rule.yaml"
	orderKey   = "X-API-Key: change-me"
)

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

// policiesNameRules has Envoy Gateway's own policies count for some requests of a route.
func policiesNameRules(t *testing.T) {
	kubectl(t, "apply", "-f", rulePolicy)
	address := addressOfGateway(t, "web")
	stranger := func(want string, claims ...string) {
		t.Helper()
		eventually(t, patience, "a stranger is answered by "+want, func() string {
			// Some answers are errors of HTTP.
			said, _ := labOutput(t, append([]string{"curl", "--timeout=5s", "--host=web.example.com", "http://" + address + "/orders"}, headers(claims)...)...)
			if !strings.Contains(said, want) {
				return "answered by " + said
			}
			return ""
		})
	}
	stranger("401")
	stranger("web-", orderKey)
	stranger("429", orderKey)
	for _, path := range []string{"orders", "other"} {
		if missing := served(t, laptop, path); missing != "" {
			t.Errorf("an operator of the tailnet: %s", missing)
		}
	}
	// Without the rule nobody gets around it.
	kubectl(t, "delete", "httproute", "careful", "-n", namespace)
	stranger("500", orderKey)
	if missing := served(t, laptop, "orders"); missing != "" {
		t.Errorf("an operator of the tailnet: %s", missing)
	}
	eventually(t, patience, "the policy tells of it", func() string {
		got := jsonpath(t, "tailscaleroutepolicies", "orders", `{.status.rules[?(@.name=="others")].message}`)
		if !strings.Contains(got, "HTTPRoute "+namespace+"/careful does not exist") {
			return "it says " + got
		}
		return ""
	})
	kubectl(t, "delete", "-f", rulePolicy, "--ignore-not-found")
	stranger("web-")
}
