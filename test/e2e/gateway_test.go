// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// proxiedGateway is a Gateway of another namespace, with a listener for the PROXY protocol and one
// without it. Its route adds the client's address to the response.
const proxiedGateway = `apiVersion: v1
kind: Namespace
metadata:
  name: proxied-gateway
---
apiVersion: v1
kind: Pod
metadata:
  name: web
  namespace: proxied-gateway
  labels:
    app: web
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: web
    image: registry.k8s.io/e2e-test-images/agnhost:2.53
    args: [netexec]
    readinessProbe:
      httpGet:
        port: 8080
---
apiVersion: v1
kind: Service
metadata:
  name: web
  namespace: proxied-gateway
spec:
  selector:
    app: web
  ports:
  - port: 80
    targetPort: 8080
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata:
  name: gw
  namespace: proxied-gateway
spec:
  gatewayClassName: envoy
  listeners:
  - name: http
    protocol: HTTP
    port: 80
  - name: proxied
    protocol: HTTP
    port: 8081
---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: ClientTrafficPolicy
metadata:
  name: proxied
  namespace: proxied-gateway
spec:
  targetRefs:
  - group: gateway.networking.k8s.io
    kind: Gateway
    name: gw
    sectionName: proxied
  proxyProtocol: {}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: web
  namespace: proxied-gateway
spec:
  parentRefs:
  - name: gw
  rules:
  - backendRefs:
    - name: web
      port: 80
---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleGateway
metadata:
  name: other
  namespace: quickstart
spec:
  gatewayRef:
    namespace: proxied-gateway
    name: gw
---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleServices
metadata:
  name: proxied
  namespace: quickstart
spec:
  selector:
    matchLabels:
      app: web
  vipService:
    ports:
    - tcp:80
    tags:
    - tag:k8s
  backends:
  - kind: TailscaleGateway
    name: other
    port: 8081
    proxyProtocol: v2
`

// permitted allows the namespace above to share the Gateway.
const permitted = `apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata:
  name: quickstart
  namespace: proxied-gateway
spec:
  from:
  - group: gateway.tailscale.com
    kind: TailscaleGateway
    namespace: quickstart
  to:
  - group: gateway.networking.k8s.io
    kind: Gateway
    name: gw
`

// howMany is the number of routes that come and go at once.
const howMany = 15

// manyRoutes is one of many routes.
const manyRoutes = `---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: many-%d
  namespace: quickstart
  labels:
    app: many
spec:
  parentRefs:
  - name: eg
  hostnames: [many-%d.example.com]
  rules:
  - backendRefs:
    - name: web
      port: 80
`

// sharesGateway reaches a real Envoy of a real Envoy Gateway, and the pods behind its routes,
// through a Tailscale Service.
func sharesGateway(t *testing.T) {
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"ReportsMissingGateway", reportsMissingGateway},
		{"Answers", answersByGateway},
		{"PassesClientAddress", passesClientToEnvoy},
		{"FollowsRoutes", followsRoutes},
		{"KeepsService", keepsService},
		{"LeavesNothing", leavesNoGateway},
	} {
		if !t.Run(step.name, step.run) {
			return
		}
	}
}

// reportsMissingGateway checks the conditions of a service whose Gateway does not exist.
func reportsMissingGateway(t *testing.T) {
	kubectl(t, "apply", "-f", "examples/shared-gateway.yaml")
	kubectl(t, "delete", "gateway", "eg", "-n", namespace)
	conditionOf(t, "tailscalegateways", "public", "GatewayValid", "False", "GatewayNotFound", patience)
	conditionOf(t, "tailscaleservices", "gateway", "Accepted", "False", "GatewayNotValid", patience)
}

func answersByGateway(t *testing.T) {
	kubectl(t, "apply", "-f", "examples/shared-gateway.yaml")
	began := time.Now()
	conditionOf(t, "tailscalegateways", "public", "GatewayValid", "True", "ServiceFound", patience)
	t.Logf("Gateway found after %s", time.Since(began).Round(100*time.Millisecond))
	took := answered(t, "gateway", "web", patience)
	t.Logf("response after %s more", took.Round(100*time.Millisecond))
	eventually(t, time.Minute, "columns of tailscalegateways", func() string {
		out := kubectl(t, "get", "tailscalegateways", "public", "-n", namespace)
		for _, w := range []string{"eg", "envoy-quickstart-eg-", "True", "ServiceFound"} {
			if !strings.Contains(out, w) {
				return fmt.Sprintf("no %q in\n%s", w, out)
			}
		}
		return ""
	})
	conditionOf(t, "tailscalegateways", "public", "Ready", "True", "Available", patience)
	conditionOf(t, "tailscaleservices", "gateway", "Ready", "True", "Available", patience)
}

// followsRoutes checks that the TailscaleGateway is not written while many routes come and go.
func followsRoutes(t *testing.T) {
	u := vipURL(t, "gateway")
	kubectl(t, "delete", "httproute", "eg", "-n", namespace)
	eventually(t, time.Minute, "no answer without a route", func() string {
		if response, err := curl(t, u); err == nil && strings.HasPrefix(response, "web-") {
			return "the response is " + response
		}
		return ""
	})
	previous := jsonpath(t, "tailscalegateways", "public", "{.metadata.resourceVersion}")
	var routes strings.Builder
	for i := range howMany {
		fmt.Fprintf(&routes, manyRoutes, i, i)
	}
	apply(t, routes.String())
	eventually(t, patience, "routes attached", func() string {
		if n := jsonpath(t, "gateway", "eg", "{.status.listeners[0].attachedRoutes}"); n != strconv.Itoa(howMany) {
			return n + " are attached"
		}
		return ""
	})
	kubectl(t, "delete", "httproutes", "-n", namespace, "-l", "app=many")
	kubectl(t, "apply", "-f", "examples/shared-gateway.yaml")
	answered(t, "gateway", "web", patience)
	if current := jsonpath(t, "tailscalegateways", "public", "{.metadata.resourceVersion}"); current != previous {
		t.Errorf("the TailscaleGateway was written while routes came and went: version %s, then %s", previous, current)
	}
	breakerStaysClosed(t)
}

// passesClientToEnvoy checks that Envoy sees the client's address in the tailnet, once the
// Gateway's namespace permits to share the Gateway.
func passesClientToEnvoy(t *testing.T) {
	apply(t, proxiedGateway)
	conditionOf(t, "tailscalegateways", "other", "GatewayValid", "False", "RefNotPermitted", patience)
	apply(t, permitted)
	returnsClient(t, vipURL(t, "proxied")+"header?key=X-Forwarded-For")
}

// returnsClient waits until the response at a URL of the tailnet holds the client's address.
func returnsClient(t *testing.T, u string) {
	t.Helper()
	self := struct {
		Self struct{ TailscaleIPs []string }
	}{}
	if err := json.Unmarshal([]byte(labCommand(t, "tailscale", "status", "--json")), &self); err != nil {
		t.Fatal(err)
	}
	eventually(t, patience, "address of the client from "+u, func() string {
		response, err := curl(t, u)
		if err != nil {
			return err.Error()
		}
		for _, a := range self.Self.TailscaleIPs {
			if strings.Contains(response, a) {
				return ""
			}
		}
		return fmt.Sprintf("Envoy sees %q, want one of %v", response, self.Self.TailscaleIPs)
	})
}

// keepsService checks that the service stays unchanged while there is no Gateway, and serves again
// when there is one.
func keepsService(t *testing.T) {
	kubectl(t, "delete", "gateway", "eg", "-n", namespace)
	conditionOf(t, "tailscaleservices", "gateway", "Accepted", "False", "GatewayNotValid", patience)
	conditionOf(t, "tailscaleservices", "gateway", "Advertised", "False", "GatewayNotValid", patience)
	host := kubectl(t, "get", "serviceattachments", "-n", namespace, "-l", meta.LabelServices+"=gateway", "-o=jsonpath={.items[*].spec.ports[*].backend.host}")
	if !strings.HasPrefix(host, "envoy-quickstart-eg-") || !strings.HasSuffix(host, ".envoy-gateway-system.svc") {
		t.Errorf("the ServiceAttachment has the backend %q", host)
	}
	kubectl(t, "apply", "-f", "examples/shared-gateway.yaml")
	answered(t, "gateway", "web", patience)
}

func leavesNoGateway(t *testing.T) {
	kubectl(t, "delete", "tailscaleservices,tailscalegateways", "gateway", "proxied", "public", "other", "-n", namespace, "--ignore-not-found", "--timeout=3m")
	kubectl(t, "delete", "-f", "examples/shared-gateway.yaml", "--ignore-not-found", "--timeout=3m")
	goneFrom(t, namespace, "gateway", "proxied", "public", "other")
	kubectl(t, "delete", "namespace", "proxied-gateway", "--wait=false")
}
