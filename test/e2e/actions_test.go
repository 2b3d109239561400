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

	// rulePolicy lets operators of the tailnet reach /orders. Policies of Envoy Gateway handle the
	// requests of all other clients.
	rulePolicy = "examples/route-policy-rule.yaml"
	orderKey   = "X-API-Key: change-me"
)

// actingPolicy has each action that no example applies in the lab, some of them with a backend that
// returns the request's parameters. Its last rule conflicts with ratePolicy.
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

// policiesAct applies the remaining actions to requests of devices.
func policiesAct(t *testing.T) {
	kubectl(t, "apply", "-f", ratePolicy)
	answers := func(path string, want ...string) {
		t.Helper()
		eventually(t, patience, "/"+path, func() string {
			// Some responses are HTTP errors.
			response, _ := labOutput(t, "tailnet-curl", "-i", "--as=client", "--timeout=10s", "--host=web.example.com", tailnetOne.url(t, devices)+path)
			for _, w := range want {
				if !strings.Contains(response, w) {
					return "no " + w + " in " + response
				}
			}
			return ""
		})
	}
	answers("search", " 429 ")
	if missing := served(t, "client", "other"); missing != "" {
		t.Errorf("a path without a limit: %s", missing)
	}
	apply(t, actingPolicy)
	answers("old", " 301 ", "Location: http://web.example.com/new")
	answers("header?key=X-Desk", " 200 ", "X-Served-By: clerk", "\n\nfour")
	// The clerk sends itself a hundred requests.
	answers("dial?host=127.0.0.1&port=8080&request=hostname&tries=100", " 504 ")

	// The older of two policies takes precedence, and both report the conflict.
	const conflicts = "{range .status.policyConflicts[*]}{.type} {.rule} {.conflictingPolicy} {.conflictingRule} {.takesPrecedence},{end}"
	for policy, want := range map[string]string{
		"rate":    "PriorityConflict search quickstart/various late true,",
		"various": "PriorityConflict late quickstart/rate search ,",
	} {
		eventually(t, patience, "conflicts of "+policy, func() string {
			if got := jsonpath(t, "tailscaleroutepolicies", policy, conflicts); got != want {
				return "conflicts are " + got
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

// policiesNameRules applies Envoy Gateway's own policies to some requests of a route.
func policiesNameRules(t *testing.T) {
	kubectl(t, "apply", "-f", rulePolicy)
	address := addressOfGateway(t, "web")
	expectUnknown := func(want string, claims ...string) {
		t.Helper()
		eventually(t, patience, "response to an unknown client is "+want, func() string {
			// Some responses are HTTP errors.
			response, _ := labOutput(t, append([]string{"curl", "--timeout=5s", "--host=web.example.com", "http://" + address + "/orders"}, headers(claims)...)...)
			if !strings.Contains(response, want) {
				return "the response is " + response
			}
			return ""
		})
	}
	expectUnknown("401")
	expectUnknown("web-", orderKey)
	expectUnknown("429", orderKey)
	for _, path := range []string{"orders", "other"} {
		if missing := served(t, laptop, path); missing != "" {
			t.Errorf("an operator of the tailnet: %s", missing)
		}
	}
	// Without the rule, no client bypasses the policy.
	kubectl(t, "delete", "httproute", "careful", "-n", namespace)
	expectUnknown("500", orderKey)
	if missing := served(t, laptop, "orders"); missing != "" {
		t.Errorf("an operator of the tailnet: %s", missing)
	}
	eventually(t, patience, "the policy reports the missing route", func() string {
		got := jsonpath(t, "tailscaleroutepolicies", "orders", `{.status.rules[?(@.name=="others")].message}`)
		if !strings.Contains(got, "HTTPRoute "+namespace+"/careful does not exist") {
			return "the message is " + got
		}
		return ""
	})
	kubectl(t, "delete", "-f", rulePolicy, "--ignore-not-found")
	expectUnknown("web-")
}
