// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && tailnets

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
)

const (
	// designNamespace has the objects of examples/design, which name no namespace.
	designNamespace = "design"

	// designGateway is the Gateway that examples/design/corp-gateway.yaml names, with the grants for
	// it and for the target of examples/design/example-endpoints.yaml, and a route to that target.
	designGateway = `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: eg-gateway, namespace: envoy-gateway-system}
spec:
  gatewayClassName: envoy
  listeners:
  - {name: http, protocol: HTTP, port: 80, allowedRoutes: {namespaces: {from: All}}}
---
apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {name: design, namespace: envoy-gateway-system}
spec:
  from: [{group: gateway.tailscale.com, kind: TailscaleGateway, namespace: design}]
  to: [{group: gateway.networking.k8s.io, kind: Gateway, name: eg-gateway}]
---
apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {name: design, namespace: quickstart}
spec:
  from: [{group: gateway.tailscale.com, kind: TailscaleEndpoints, namespace: design}]
  to: [{group: "", kind: Service, name: web}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: external, namespace: design}
spec:
  parentRefs: [{name: eg-gateway, namespace: envoy-gateway-system}]
  hostnames: [external.example.com]
  rules:
  - backendRefs: [{group: gateway.tailscale.com, kind: TailscaleEndpoints, name: example-endpoints, port: 80}]
`

	// designBackend is the Service web-service that two of the manifests publish, with a pod.
	designBackend = `apiVersion: v1
kind: Service
metadata: {name: web-service, namespace: design}
spec:
  selector: {app: web-service}
  ports:
  - {name: http, port: 80, targetPort: 8080}
  - {name: https, port: 443, targetPort: 8080}
---
apiVersion: v1
kind: Pod
metadata: {name: web-service-1, namespace: design, labels: {app: web-service}}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 1
  containers:
  - name: http
    image: registry.k8s.io/e2e-test-images/agnhost:2.53
    args: [netexec, --http-port=8080, --udp-port=-1]
`
)

// appliesDesigns applies the manifests of examples/design with their statuses, with the lab's control
// plane, image, devices and an external host that the lab has, and sends requests to each.
func appliesDesigns(t *testing.T) {
	kubectl(t, "create", "namespace", designNamespace)
	apply(t, designGateway)
	apply(t, designBackend)
	apply(t, fmt.Sprintf(prober, designNamespace, "prober"))
	kubectl(t, "wait", "pod/prober", "pod/web-service-1", "-n", designNamespace, "--for=condition=Ready", "--timeout=60s")

	designEndpoints(t)
	for name, n := range map[string]tailnet{"test-tailnet": tailnetOne, "company-tailnet": tailnetOne, "corp": tailnetOne, "corp-tailnet": tailnetOne, "dev-tailnet": tailnetTwo} {
		designTailnet(t, name, n)
	}
	designService(t, "web-proxies", "examples/design/web-proxies.yaml", "examples/design/web-service.yaml", "{.status.vipServiceStatus.addresses[*]}")
	designService(t, "web-proxy-east", "examples/design/web-proxy-east.yaml", "examples/design/web-service-east.yaml", "{.status.vipService.addresses[*]}")
	designTargets(t)
	designRoutes(t)

	kubectl(t, "delete", "tailscalegateways,tailscaleservices,tailscaleendpoints", "--all", "-n", designNamespace, "--timeout=4m")
	goneFrom(t, designNamespace, "corp-gateway", "corp-endpoints", "example-endpoints")
	kubectl(t, "delete", "tailscaletailnets", "test-tailnet", "company-tailnet", "corp", "corp-tailnet", "dev-tailnet", "--timeout=2m")
	kubectl(t, "delete", "gateways.gateway.networking.k8s.io", "eg-gateway", "-n", extensionNamespace, "--timeout=2m")
	kubectl(t, "delete", "referencegrants", "design", "-n", extensionNamespace)
	kubectl(t, "delete", "referencegrants", "design", "-n", namespace)
	kubectl(t, "delete", "secrets", "-n", "default", "-l", "design=true")
	kubectl(t, "delete", "namespace", designNamespace, "--timeout=3m")
}

// applyDesign applies a manifest in the namespace, after replacements of pairs. It uses kubectl's
// default, because server-side apply refuses types in the status that the API server drops
// (docs/dropped.md).
func applyDesign(t *testing.T, file string, pairs ...string) {
	t.Helper()
	manifest := strings.NewReplacer(append(pairs, "metadata:\n", "metadata:\n  namespace: "+designNamespace+"\n")...).Replace(readFile(t, file))
	if out, err := tryRun(t, manifest, "kubectl", "apply", "-f", "-"); err != nil {
		t.Fatalf("cannot apply %s: %v\n%s", file, err, out)
	}
}

// designTailnet creates a TailscaleTailnet of the lab from the manifest.
func designTailnet(t *testing.T, name string, n tailnet) {
	t.Helper()
	secret := "tailscale-oauth-" + string(n)
	if kubectl(t, "get", "secret", secret, "-n", "default", "--ignore-not-found", "-o=name") == "" {
		kubectl(t, "create", "secret", "generic", secret, "-n", "default",
			"--from-literal=client_id="+n.env(t, "TAILNET_CLIENT_ID"), "--from-file=client_secret="+n.env(t, "TAILNET_CLIENT_SECRET_FILE"))
		kubectl(t, "label", "secret", secret, "-n", "default", "design=true")
	}
	simulated := fmt.Sprintf("spec:\n  apiURL: %[1]q\n  controlURL: %[1]q\n", n.env(t, "TAILNET_API_IN_CLUSTER"))
	apply(t, strings.NewReplacer("test-tailnet", name, "tailscale-oauth", secret, "spec:\n", simulated).Replace(readFile(t, "examples/design/tailnet.yaml")))
}

// designEndpoints requests an external target, whose object names no tailnet, through Envoy. The
// quickstart's tailnet is the only one at this time.
func designEndpoints(t *testing.T) {
	setDirectTargets(t, true)
	// In a cleanup the test's context would have ended.
	defer setDirectTargets(t, false)
	applyDesign(t, "examples/design/example-endpoints.yaml", "\"example.com:80\"", "web."+namespace+".svc:80")
	conditionIn(t, designNamespace, "tailscaleendpoints", "example-endpoints", "MachinesReady", "True", "AllMachinesReady", patience)
	if got := jsonpathIn(t, designNamespace, "tailscaleendpoints", "example-endpoints", "{.status.tailnet}"); got != "quickstart" {
		t.Errorf("the tailnet is %q", got)
	}
	routed(t, "cluster", designAddress(t), "external.example.com", patience)
}

// setDirectTargets sets a value of the extension's chart.
func setDirectTargets(t *testing.T, enabled bool) {
	t.Helper()
	if out, err := tryRun(t, "", "helm", "upgrade", extension, "package/charts/"+extension, "-n", extensionNamespace, "--reset-then-reuse-values", fmt.Sprintf("--set=directTargets=%t", enabled), "--wait"); err != nil {
		t.Errorf("cannot upgrade the chart: %v\n%s", err, out)
	}
}

// designAddress returns the address of the Gateway.
func designAddress(t *testing.T) (address string) {
	t.Helper()
	eventually(t, patience, "address of Gateway eg-gateway", func() string {
		if address = jsonpathIn(t, extensionNamespace, "gateways.gateway.networking.k8s.io", "eg-gateway", "{.status.addresses[0].value}"); address == "" {
			return "none yet"
		}
		return ""
	})
	return address
}

// designService requests a Tailscale Service, and compares the names and addresses in the statuses with
// those that the tailnet has.
func designService(t *testing.T, endpoints, proxies, service, addresses string) {
	t.Helper()
	applyDesign(t, proxies, "\"tailscale/tailscale:latest\"", products.Tailscale)
	applyDesign(t, service)
	answeredAt(t, tailnetOne.url(t, "web-service")+"hostname", "web-service", patience)
	conditionIn(t, designNamespace, "tailscaleservices", "web-service", "Ready", "True", "Available", patience)

	eventually(t, patience, "status of web-service", func() string {
		fields := strings.Fields(jsonpathIn(t, designNamespace, "tailscaleservices", "web-service", "{.status.totalBackends} {.status.healthyBackends}"))
		if !slices.Equal(fields, []string{"2", "2"}) {
			return fmt.Sprintf("total and healthy backends are %v", fields)
		}
		return ""
	})
	var hosting, all []string
	eventually(t, patience, "machines in the statuses", func() string {
		hosting = strings.Fields(jsonpathIn(t, designNamespace, "tailscaleservices", "web-service", "{.status.selectedEndpoints[0].machines[*]}"))
		all = strings.Fields(jsonpathIn(t, designNamespace, "tailscaleendpoints", endpoints, "{.status.machines[*].name}"))
		if len(hosting) != 2 || len(all) != 4 {
			return fmt.Sprintf("%v host the service, of the machines %v", hosting, all)
		}
		return ""
	})
	s := tailnetState(t)
	for _, name := range append(hosting, all...) {
		if s.hosts(name) != 1 {
			t.Errorf("the tailnet has no machine %s", name)
		}
	}
	if got := strings.Fields(jsonpathIn(t, designNamespace, "tailscaleservices", "web-service", addresses)); len(got) == 0 {
		t.Error("the status has no address")
	} else if _, err := tailnetOne.curl(t, "http://"+got[0]+"/hostname"); err != nil {
		t.Errorf("the address %s of the status does not answer: %v", got[0], err)
	}
	kubectl(t, "delete", "tailscaleservices", "web-service", "-n", designNamespace, "--timeout=3m")
	kubectl(t, "delete", "tailscaleendpoints", endpoints, "-n", designNamespace, "--timeout=3m")
	goneFrom(t, designNamespace, endpoints)
}

// designTargets reaches a device that has the tags of the manifest.
func designTargets(t *testing.T) {
	const device = "api-server"
	labCommand(t, "tailnet-client", device)
	if err := tailnetClient(t).Devices().SetTags(t.Context(), tailnetOne.node(t, device), []string{"tag:client", "tag:api", "tag:production"}); err != nil {
		t.Fatal(err)
	}
	applyDesign(t, "examples/design/corp-endpoints.yaml", "100.64.0.10", addressOf(t, device), "corp.ts.net", domain(t))
	reaches(t, designNamespace, "http", "corp-endpoints-"+device, 8080, patience)
}

// designRoutes reaches a discovered service by a generated route of the Gateway in another namespace.
func designRoutes(t *testing.T) {
	const orders = "svc:api-orders"
	applyDesign(t, "examples/design/corp-gateway.yaml")
	tailnetOne.serve(t, bothHost, orders)
	eventually(t, patience, orders+" by the Gateway", func() string {
		if response, err := labCurl(t, "cluster", "http://"+designAddress(t)+"/tailscale/api-orders/echo?msg=welcome", "api-orders.tailscale.local"); err != nil || response != "welcome" {
			return fmt.Sprintf("answered by %q, %v", response, err)
		}
		return ""
	})
	tailnetOne.withdraw(t, bothHost, orders)
}
