// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"time"
)

const (
	gatewayNamespace = "plain-gateway"
	gatewayHost      = "www.example.com"

	// plainGateway is a Gateway with a plain Service as its backend and no object of Tailscale
	// Gateway.
	plainGateway = `apiVersion: v1
kind: Namespace
metadata:
  name: plain-gateway
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: plain-gateway
spec:
  selector:
    matchLabels:
      app: web
  template:
    metadata:
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
  namespace: plain-gateway
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
  namespace: plain-gateway
spec:
  gatewayClassName: envoy
  listeners:
  - name: http
    protocol: HTTP
    port: 80
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: web
  namespace: plain-gateway
spec:
  parentRefs:
  - name: gw
  hostnames:
  - www.example.com
  rules:
  - backendRefs:
    - name: web
      port: 80
`
)

// servesPlainGateway checks that a Gateway without objects of Tailscale Gateway gets a real Envoy
// and an address for its LoadBalancer.
func servesPlainGateway(t *testing.T) {
	apply(t, plainGateway)
	var address string
	took := eventually(t, 3*time.Minute, "the Gateway has an address", func() string {
		address = programmed(t)
		if address == "" {
			return "the Gateway is not Programmed: " + jsonpathIn(t, gatewayNamespace, "gateway", "gw", "{.status}")
		}
		return ""
	})
	t.Logf("Programmed with address %s after %s", address, took.Round(time.Second))
	for _, source := range []string{"cluster", "outside"} {
		// Only Envoy sets a request ID.
		took := eventually(t, time.Minute, "the page is served to "+source, func() string {
			response, err := labCurl(t, source, "http://"+address+"/header?key=X-Request-Id", gatewayHost)
			if err != nil {
				return err.Error() + ": " + response
			}
			if response == "" {
				return "the request has no ID: it did not pass Envoy"
			}
			return ""
		})
		t.Logf("served to %s after %s", source, took.Round(100*time.Millisecond))
	}
	if response, err := labCurl(t, "cluster", "http://"+address+"/hostname", "other.example.com"); err == nil {
		t.Errorf("a host without a route is served: %s", response)
	}
	image := strings.TrimSpace(kubectl(t, "get", "pods", "-n", "envoy-gateway-system", "-l", "gateway.envoyproxy.io/owning-gateway-name=gw",
		"-o=jsonpath={.items[0].spec.containers[?(@.name==\"envoy\")].image}"))
	if !strings.HasPrefix(image, "docker.io/envoyproxy/envoy:") {
		t.Errorf("the proxy's image is %q", image)
	}
	kubectl(t, "delete", "namespace", gatewayNamespace, "--wait=false")
}

// programmed returns the Gateway's address once it is Programmed.
func programmed(t *testing.T) string {
	t.Helper()
	gw := struct {
		Status struct {
			Addresses []struct {
				Value string `json:"value"`
			} `json:"addresses"`
			Conditions []struct {
				Type   string `json:"type"`
				Status string `json:"status"`
			} `json:"conditions"`
		} `json:"status"`
	}{}
	if err := json.Unmarshal([]byte(kubectl(t, "get", "gateway", "gw", "-n", gatewayNamespace, "-o=json")), &gw); err != nil {
		t.Fatalf("cannot parse the Gateway: %v", err)
	}
	for _, c := range gw.Status.Conditions {
		if c.Type == "Programmed" && c.Status == "True" && len(gw.Status.Addresses) == 1 {
			return gw.Status.Addresses[0].Value
		}
	}
	return ""
}

// labCurl requests a URL for a host from the cluster's node, or from outside of all clusters. It
// returns stdout and stderr.
func labCurl(t *testing.T, source, url, host string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, lab, "curl", "--from="+source, "--host="+host, "--timeout=5s", url).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}
