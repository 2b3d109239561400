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

// kernelNamespace permits pods with NET_ADMIN and a privileged init container.
const kernelNamespace = "kernel"

const kernelManifest = `apiVersion: v1
kind: Namespace
metadata:
  name: kernel
  labels: {pod-security.kubernetes.io/enforce: privileged}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: echo, namespace: kernel}
spec:
  replicas: 1
  selector: {matchLabels: {app: echo}}
  template:
    metadata: {labels: {app: echo}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: echo
        image: registry.k8s.io/e2e-test-images/agnhost:2.53
        args: [netexec, --http-port=8080, --udp-port=8081]
        readinessProbe: {httpGet: {path: /healthz, port: 8080}}
---
apiVersion: v1
kind: Service
metadata: {name: echo, namespace: kernel}
spec:
  selector: {app: echo}
  ports:
  - {name: http, port: 8080, protocol: TCP}
  - {name: udp, port: 8081, protocol: UDP}
---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleEndpoints
metadata: {name: both, namespace: kernel, labels: {app: echo}}
spec:
  tailnet: quickstart
  proxy:
    replicas: 1
    connectionType: bidirectional
    networking: Kernel
  endpoints:
  - {name: device, tailscaleIP: %[1]q, port: 8080, protocol: HTTP}
  - {name: udp, tailscaleFQDN: %[2]q, port: 8081, protocol: UDP}
  - {name: behind, tailscaleIP: 10.99.0.5, port: 8080, protocol: HTTP}
  - {name: ghost, tailscaleIP: ` + ghost + `, port: 18080, protocol: HTTP}
---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleServices
metadata: {name: echo, namespace: kernel}
spec:
  selector: {matchLabels: {app: echo}}
  vipService: {ports: ["do-not-validate"], tags: ["tag:k8s"]}
  backends: [{name: echo, port: 8080}]
`

// usesKernelNetworking sends TCP and UDP in both directions through Kernel networking.
func usesKernelNetworking(t *testing.T) {
	labCommand(t, "tailnet-client", "db")
	labCommand(t, "tailnet-client", "router", "--route=10.99.0.0/24")
	withDecoy(t)
	domain := strings.TrimSuffix(strings.TrimPrefix(vipURL(t, "web"), "http://web."), "/")
	apply(t, fmt.Sprintf(kernelManifest, addressOf(t, "db"), "db."+domain))
	apply(t, fmt.Sprintf(prober, kernelNamespace, "prober"))
	kubectl(t, "wait", "pod/prober", "-n", kernelNamespace, "--for=condition=Ready", "--timeout=60s")
	reaches(t, kernelNamespace, "http", ghost, 18080, 30*time.Second)

	reaches(t, kernelNamespace, "http", "both-device", 8080, 3*time.Minute)
	reaches(t, kernelNamespace, "http", "both-behind", 8080, time.Minute)
	reaches(t, kernelNamespace, "udp", "both-udp", 8081, time.Minute)
	if got, err := dial(t, kernelNamespace, "http", "both-ghost", 18080); err == nil {
		t.Errorf("a target that no device has was reached outside the tailnet: %v answered", got)
	}

	// By address: this cluster's Services have no IPv6 address, and the kernel translates within a
	// family only.
	var vip string
	eventually(t, 2*time.Minute, "address of the service", func() string {
		out, err := tryRun(t, "", "kubectl", "get", "tailscaleservices", "echo", "-n", kernelNamespace, "-o=jsonpath={.status.vipServiceStatus.addresses[0]}")
		if vip = out; err != nil || vip == "" {
			return fmt.Sprintf("%q, %v", out, err)
		}
		return ""
	})
	eventually(t, 2*time.Minute, "answer of the service's VIP", func() string {
		out, err := curl(t, "http://"+vip+":8080/hostname")
		if err != nil || !strings.HasPrefix(out, "echo-") {
			return fmt.Sprintf("%q, %v", out, err)
		}
		return ""
	})
	eventually(t, time.Minute, "answer of the service's VIP by UDP", func() string {
		out, err := labOutput(t, "tailnet-udp", vip+":8081", "hostname")
		if err != nil || !strings.HasPrefix(out, "echo-") {
			return fmt.Sprintf("%q, %v", out, err)
		}
		return ""
	})

	// The namespace controller deletes pods first, and returns after half of the longest grace
	// period. An egress pod may take its grace period of two minutes, which the deletion of a claim
	// waits for.
	kubectl(t, "delete", "tailscaleservices,tailscaleendpoints", "--all", "-n", kernelNamespace, "--timeout=4m")
	eventually(t, 2*time.Minute, "proxies gone", func() string {
		return strings.TrimSpace(kubectl(t, "get", "machines,statefulsets", "-n", kernelNamespace, "-o=name"))
	})
	kubectl(t, "delete", "namespace", kernelNamespace, "--timeout=4m")
	if n := tailnetState(t).hosts(kernelNamespace + "-"); n > 0 {
		t.Errorf("%d devices of the proxies are left in the tailnet", n)
	}
}
