// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const (
	// joinedExample has a Gateway, a route to the quickstart's web server and a TailscaleGateway,
	// all of one name, and nothing else.
	joinedExample = "examples/shared-gateway-tailnets.yaml"
	joined        = "front"
	secondGateway = "aside"
)

// addedRoute leads some paths of the Gateway to the prober, which returns its name and the request.
const addedRoute = `apiVersion: v1
kind: Service
metadata: {name: asked, namespace: quickstart}
spec:
  selector: {app: prober}
  ports: [{port: 80, targetPort: 8080}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: added, namespace: quickstart}
spec:
  parentRefs: [{name: ` + joined + `}]
  rules:
  - matches:
    - path: {type: Exact, value: /hostname}
    - path: {type: Exact, value: /header}
    backendRefs: [{name: asked, port: 80}]
`

// besideJoined joins the Gateway to the tailnet a second time.
const besideJoined = `apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleGateway
metadata: {name: ` + secondGateway + `, namespace: quickstart}
spec:
  gatewayRef: {name: ` + joined + `}
  tailnets:
  - name: quickstart
    proxy: {replicas: 1}
    vipService: {tags: ["tag:k8s"]}
`

// identified makes a listener of the Gateway take the PROXY protocol.
const identified = `apiVersion: gateway.envoyproxy.io/v1alpha1
kind: ClientTrafficPolicy
metadata: {name: identified, namespace: quickstart}
spec:
  targetRefs:
  - {group: gateway.networking.k8s.io, kind: Gateway, name: ` + joined + `, sectionName: identified}
  proxyProtocol: {}
`

// joinsGateway serves a Gateway and its backends in a tailnet with a TailscaleGateway alone.
func joinsGateway(t *testing.T) {
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"Answers", answersWhereJoined},
		{"YieldsName", yieldsNameWhereJoined},
		{"AddsRoute", addsRouteWhereJoined},
		{"PassesClientAddress", passesClientWhereJoined},
		{"RemovesRoute", removesRouteWhereJoined},
		{"LeavesNothing", leavesNothingWhereJoined},
	} {
		if !t.Run(step.name, step.run) {
			return
		}
	}
}

// answersWhereJoined sends requests to the Gateway and to the Service behind its route.
func answersWhereJoined(t *testing.T) {
	kubectl(t, "apply", "-f", joinedExample)
	for _, service := range []string{joined, "web-" + namespace} {
		took := answeredAt(t, tailnetOne.url(t, service), "web", patience)
		t.Logf("%s responded after %s", service, took.Round(100*time.Millisecond))
	}
	for condition, reason := range map[string]string{
		"GatewayValid":    "ServiceFound",
		"ServicesReady":   "ServicesConfigured",
		"GatewayVIPReady": "GatewayVIPHosted",
		"EndpointsReady":  "EndpointsReady",
		"Ready":           "Available",

		"ExtensionServerReady": "ExtensionReporting",
	} {
		conditionOf(t, "tailscalegateways", joined, condition, "True", reason, patience)
	}
}

// yieldsNameWhereJoined has a second TailscaleGateway publish the Service behind the route: the
// first keeps the name.
func yieldsNameWhereJoined(t *testing.T) {
	apply(t, besideJoined)
	conditionOf(t, "tailscalegateways", secondGateway, "Ready", "True", "Available", patience)
	name := jsonpath(t, "tailscalegateways", secondGateway, `{.status.services[?(@.target=="Service/`+namespace+`/web")].serviceName}`)
	name = strings.TrimPrefix(name, "svc:")
	if want := "web-" + namespace + "-service-" + namespace + "-" + secondGateway + "-"; !strings.HasPrefix(name, want) {
		t.Errorf("the Service behind the route is named %q there, want %s and a hash", name, want)
	}
	for _, service := range []string{name, "web-" + namespace} {
		answeredAt(t, tailnetOne.url(t, service), "web", patience)
	}
	kubectl(t, "delete", "tailscalegateways", secondGateway, "-n", namespace, "--timeout=3m")
	goneFrom(t, namespace, secondGateway, name)
}

// addsRouteWhereJoined adds a route, and waits until clients of the tailnet reach it and its
// backend.
func addsRouteWhereJoined(t *testing.T) {
	podAnswersWhereJoined(t, "the first route answers", "web-")
	apply(t, addedRoute)
	podAnswersWhereJoined(t, "the added route answers", "prober")
	proberAt(t, tailnetOne.url(t, "asked-"+namespace)+"hostname")
}

// podAnswersWhereJoined waits until the Gateway returns the response of a pod. `make bench`
// measures how soon.
func podAnswersWhereJoined(t *testing.T, description, want string) {
	t.Helper()
	u := tailnetOne.url(t, joined) + "hostname"
	took := eventually(t, patience, description, func() string {
		if response, err := curl(t, u); err != nil || !strings.HasPrefix(response, want) {
			return fmt.Sprintf("the response is %q, %v", response, err)
		}
		return ""
	})
	t.Logf("%s after %s", description, took.Round(100*time.Millisecond))
}

// removesRouteWhereJoined removes the route, and waits until clients of the tailnet no longer reach
// it.
func removesRouteWhereJoined(t *testing.T) {
	kubectl(t, "delete", "httproute", "added", "-n", namespace)
	podAnswersWhereJoined(t, "the removed route is gone", "web-")
	eventually(t, patience, "svc:asked gone", func() string {
		for _, v := range tailnetState(t).Services {
			if v.Name == "svc:asked-"+namespace {
				return "the tailnet has the service"
			}
		}
		return ""
	})
}

// passesClientWhereJoined checks that Envoy sees the client's address in the tailnet.
func passesClientWhereJoined(t *testing.T) {
	apply(t, identified)
	patch(t, "gateway", joined, `[{"op":"add","path":"/spec/listeners/-","value":{"name":"identified","protocol":"HTTP","port":8081}}]`)
	patch(t, "tailscalegateways", joined, `[{"op":"add","path":"/spec/tailnets/0/listeners","value":[{"name":"http"},{"name":"identified","identity":"ProxyProtocol"}]}]`)
	returnsClient(t, strings.TrimSuffix(tailnetOne.url(t, joined), "/")+":8081/header?key=X-Forwarded-For")
}

// proberAt waits until the prober answers at a URL in the tailnet.
func proberAt(t *testing.T, u string) time.Duration {
	t.Helper()
	return eventually(t, patience, "answer of "+u, func() string {
		if response, err := curl(t, u); err != nil || response != "prober" {
			return fmt.Sprintf("the response is %q, %v", response, err)
		}
		return ""
	})
}

// patch patches an object by JSON patch.
func patch(t *testing.T, kind, name, patch string) {
	t.Helper()
	kubectl(t, "patch", kind, name, "-n", namespace, "--type=json", "--patch="+patch)
}

func leavesNothingWhereJoined(t *testing.T) {
	kubectl(t, "delete", "tailscalegateways", joined, "-n", namespace, "--timeout=3m")
	goneFrom(t, namespace, joined, "web-"+namespace, "asked-"+namespace)
	kubectl(t, "delete", "-f", joinedExample, "--ignore-not-found", "--timeout=3m")
	kubectl(t, "delete", "clienttrafficpolicy,service", "identified", "asked", "-n", namespace, "--ignore-not-found")
}
