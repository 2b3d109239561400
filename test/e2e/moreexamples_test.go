// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && tailnets

package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// walkthroughBackends answer for the Services web-service and api of examples/walkthrough.
const walkthroughBackends = `apiVersion: v1
kind: Pod
metadata: {name: web-1, namespace: default, labels: {app: web}}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 1
  containers:
  - name: http
    image: registry.k8s.io/e2e-test-images/agnhost:2.53
    args: [netexec, --http-port=8080, --udp-port=-1]
  - name: https
    image: registry.k8s.io/e2e-test-images/agnhost:2.53
    args: [netexec, --http-port=8443, --udp-port=-1]
---
apiVersion: v1
kind: Pod
metadata: {name: api-1, namespace: default, labels: {app: api}}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 1
  containers:
  - name: http
    image: registry.k8s.io/e2e-test-images/agnhost:2.53
    args: [netexec, --http-port=8080, --udp-port=-1]
`

// appliesWalkthrough applies the files of examples/walkthrough in their order, with the lab's
// control plane and addresses of the lab's devices.
func appliesWalkthrough(t *testing.T) {
	const home = "default"
	labCommand(t, "tailnet-client", "wiki")
	labCommand(t, "tailnet-client", "db")
	kubectl(t, "create", "secret", "generic", "tailscale-oauth", "-n", home,
		"--from-literal=client_id="+tailnetOne.env(t, "TAILNET_CLIENT_ID"), "--from-file=client_secret="+tailnetOne.env(t, "TAILNET_CLIENT_SECRET_FILE"))
	simulated := fmt.Sprintf("spec:\n  apiURL: %[1]q\n  controlURL: %[1]q\n", tailnetOne.env(t, "TAILNET_API_IN_CLUSTER"))
	devices := strings.NewReplacer("100.64.0.10", addressOf(t, "wiki"), "100.64.0.20", addressOf(t, "db"), "tail1234.ts.net", domain(t))
	apply(t, walkthroughBackends)
	apply(t, strings.Replace(readFile(t, "examples/walkthrough/1-tailnet.yaml"), "spec:\n", simulated, 1))
	apply(t, devices.Replace(readFile(t, "examples/walkthrough/2-endpoints.yaml")))
	kubectl(t, "apply", "-f", "examples/walkthrough/3-services.yaml", "-f", "examples/walkthrough/4-auto-provisioned.yaml", "-f", "examples/walkthrough/5-gateway.yaml")

	conditionIn(t, home, "tailscaleendpoints", "web-proxies", "MachinesReady", "True", "AllMachinesReady", patience)
	for _, u := range []string{"http://web-service." + domain(t) + "/hostname", "http://web-service." + domain(t) + ":443/hostname", "http://api." + domain(t) + "/hostname"} {
		answeredAt(t, u, strings.TrimSuffix(strings.TrimPrefix(u, "http://")[:3], "."), patience)
	}
	if got := jsonpathIn(t, home, "tailscaleendpoints", "web-proxies", `{.status.egressTargets[?(@.name=="wiki")].message}`); strings.Contains(got, "NameMismatch") {
		t.Errorf("the wiki has an unexpected name: %s", got)
	}
	// The Gateway finds a service by the beginning of its name, and answers for it under its
	// path.
	const orders = "svc:api-orders"
	tailnetOne.serve(t, bothHost, orders)
	eventually(t, patience, orders+" by the Gateway", func() string {
		address := jsonpathIn(t, home, "gateways.gateway.networking.k8s.io", "company", "{.status.addresses[0].value}")
		if response, err := labCurl(t, "cluster", "http://"+address+"/tailscale/api-orders/echo?msg=welcome", "api-orders.tailscale.local"); err != nil || response != "welcome" {
			return fmt.Sprintf("answered by %q, %v", response, err)
		}
		return ""
	})
	tailnetOne.withdraw(t, bothHost, orders)
	// The backends' names begin like those of the objects that must be gone.
	kubectl(t, "delete", "pod", "web-1", "api-1", "-n", home)
	kubectl(t, "delete", "-f", "examples/walkthrough/5-gateway.yaml", "-f", "examples/walkthrough/4-auto-provisioned.yaml", "-f", "examples/walkthrough/3-services.yaml", "-f", "examples/walkthrough/2-endpoints.yaml", "--timeout=3m")
	goneFrom(t, home, "company", "api", "web-service", "web-proxies")
	kubectl(t, "delete", "-f", "examples/walkthrough/1-tailnet.yaml", "--timeout=2m")
	kubectl(t, "delete", "secret", "tailscale-oauth", "-n", home)
}

// appliesEgressExample applies examples/egress.yaml with devices of the lab. The prober replaces
// the pod of the example, whose image the lab lacks.
func appliesEgressExample(t *testing.T) {
	labCommand(t, "tailnet-client", "wiki")
	labCommand(t, "tailnet-client", "shop-db")
	manifest, _, _ := strings.Cut(readFile(t, "examples/egress.yaml"), "---\n# A pod")
	apply(t, strings.NewReplacer("100.64.0.10", addressOf(t, "shop-db"), "grafana.tail1234.ts.net:3000", "wiki."+domain(t)+":8080", "tail1234.ts.net", domain(t)).Replace(manifest))
	reaches(t, namespace, "http", "out-wiki", 80, patience)
	reaches(t, namespace, "http", "out-grafana", 8080, patience)
	// The proxy refuses a device without the tag, and an address without a router never becomes
	// ready.
	eventually(t, patience, "status of the targets", func() string {
		got := jsonpath(t, "tailscaleendpoints", "out", `{range .status.egressTargets[*]}{.name}={.readyProxies},{end}`)
		for _, want := range []string{"wiki/80=2", "grafana/8080=2", "db/5432=0", "printer/631=0"} {
			if !strings.Contains(got, want) {
				return "no " + want + " in " + got
			}
		}
		return ""
	})
	kubectl(t, "delete", "tailscaleendpoints", "out", "-n", namespace, "--timeout=3m")
	goneFrom(t, namespace, "out")
}

// appliesKernelExample applies examples/kernel.yaml with a device of the lab.
func appliesKernelExample(t *testing.T) {
	labCommand(t, "tailnet-client", "db")
	apply(t, strings.ReplaceAll(readFile(t, "examples/kernel.yaml"), "100.64.0.53", addressOf(t, "db")))
	conditionIn(t, kernelNamespace, "tailscaleendpoints", "both", "MachinesReady", "True", "AllMachinesReady", patience)
	eventually(t, patience, "the Service both-dns", func() string {
		if got := kubectl(t, "get", "service", "both-dns", "-n", kernelNamespace, "--ignore-not-found", "-o=jsonpath={.spec.ports[*].protocol}"); !strings.Contains(got, "UDP") || !strings.Contains(got, "TCP") {
			return "the protocols are " + got
		}
		return ""
	})
	kubectl(t, "delete", "tailscaleendpoints", "both", "-n", kernelNamespace, "--timeout=3m")
	goneFrom(t, kernelNamespace, "both")
	kubectl(t, "delete", "-f", "examples/kernel.yaml", "--ignore-not-found", "--timeout=4m")
}

// appliesReferenceGrantExample shares the Gateway of examples/gateway-reference-grant.yaml as long
// as its ReferenceGrant exists.
func appliesReferenceGrantExample(t *testing.T) {
	const example = "examples/gateway-reference-grant.yaml"
	kubectl(t, "apply", "-f", example)
	answeredAt(t, "http://tenant."+domain(t)+"/", "web", patience)
	kubectl(t, "delete", "referencegrants", "entrance-of-tenants", "-n", "platform")
	conditionOf(t, "tailscalegateways", "tenant", "GatewayValid", "False", "RefNotPermitted", patience)
	kubectl(t, "delete", "-f", example, "--ignore-not-found", "--timeout=4m")
	goneFrom(t, namespace, "tenant")
}

// appliesTailnetGrantsExample applies examples/tailnet-grants.yaml, and checks that the first entry
// that matches a namespace applies.
func appliesTailnetGrantsExample(t *testing.T) {
	kubectl(t, "create", "namespace", "shop-staging")
	apply(t, readFile(t, "examples/tailnet-grants.yaml"))
	apply(t, `apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleEndpoints
metadata: {name: teller, namespace: shop-staging}
spec:
  tailnet: shared
  tags: ["tag:shop"]
  proxy: {replicas: 1, connectionType: ingress, networking: Kernel}
`)
	message := conditionIn(t, "shop-staging", "tailscaleendpoints", "teller", "TailnetAccepted", "False", "NotGranted", patience)
	if !strings.Contains(message, "Kernel") {
		t.Errorf("the condition does not name Kernel networking: %s", message)
	}
	kubectl(t, "delete", "tailscaleendpoints", "teller", "-n", "shop-staging", "--timeout=3m")
	kubectl(t, "delete", "-f", "examples/tailnet-grants.yaml", "--timeout=2m")
	kubectl(t, "delete", "namespace", "shop-staging", "--timeout=2m")
}
