// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && families

package e2e

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// familiesNamespace permits pods with NET_ADMIN and a privileged init container.
const familiesNamespace = "families"

// familiesManifest has an IPv6-only backend, two services of it by Kernel networking, and egress by
// both kinds of networking. The first service has a port number, and the second one all ports. The
// parameters are the address of a device, and the name of a device.
const familiesManifest = `apiVersion: v1
kind: Namespace
metadata:
  name: families
  labels: {pod-security.kubernetes.io/enforce: privileged}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: six, namespace: families}
spec:
  replicas: 1
  selector: {matchLabels: {app: six}}
  template:
    metadata: {labels: {app: six}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: six
        image: registry.k8s.io/e2e-test-images/agnhost:2.53
        args: [netexec, --http-port=8080, --udp-port=8081]
        readinessProbe: {httpGet: {path: /healthz, port: 8080}}
---
apiVersion: v1
kind: Service
metadata: {name: six, namespace: families}
spec:
  ipFamilyPolicy: SingleStack
  ipFamilies: [IPv6]
  selector: {app: six}
  ports:
  - {name: http, port: 8080, protocol: TCP}
  - {name: udp, port: 8081, protocol: UDP}
---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleEndpoints
metadata: {name: kernel, namespace: families, labels: {app: six}}
spec:
  tailnet: quickstart
  proxy: {replicas: 1, connectionType: bidirectional, networking: Kernel}
  endpoints:
  - {name: address, tailscaleIP: %[1]q, port: 8080, protocol: HTTP}
  - {name: name, tailscaleFQDN: %[2]q, port: 8080, protocol: HTTP}
  - {name: udp, tailscaleFQDN: %[2]q, port: 8081, protocol: UDP}
---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleEndpoints
metadata: {name: userspace, namespace: families}
spec:
  tailnet: quickstart
  proxy: {replicas: 1, connectionType: egress}
  endpoints:
  - {name: address, tailscaleIP: %[1]q, port: 8080, protocol: HTTP}
  - {name: name, tailscaleFQDN: %[2]q, port: 8080, protocol: HTTP}
---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleServices
metadata: {name: six, namespace: families}
spec:
  selector: {matchLabels: {app: six}}
  vipService: {ports: ["tcp:8080"], tags: ["tag:k8s"]}
  backends: [{name: six, port: 8080}]
---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleServices
metadata: {name: six-all, namespace: families}
spec:
  selector: {matchLabels: {app: six}}
  vipService: {ports: ["do-not-validate"], tags: ["tag:k8s"]}
  backends: [{name: six, port: 8080}]
`

// An ipFamily is a cluster network of the lab.
type ipFamily struct {
	// flag is the value of the lab's --ip-family.
	flag string

	// families are those of pods and of Services with PreferDualStack, in order.
	families []corev1.IPFamily
}

// TestFamilies runs the quickstart, a Gateway, an IPv6-only backend and egress in a dual-stack
// cluster, and in a cluster without IPv4.
func TestFamilies(t *testing.T) {
	for _, f := range []struct {
		name string
		ipFamily
	}{
		{"DualStack", ipFamily{flag: "dual", families: []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}}},
		{"IPv6Only", ipFamily{flag: "ipv6", families: []corev1.IPFamily{corev1.IPv6Protocol}}},
	} {
		// A lab that failed stays for the dump.
		if !t.Run(f.name, f.run) {
			return
		}
	}
}

func (f ipFamily) run(t *testing.T) {
	labRun(t, "down")
	labRun(t, "up", "--install", "--ip-family="+f.flag)
	for _, step := range [][]string{{"install", "--version=" + *version, "--flavour=" + *flavour}, {"quickstart"}, {"routes", "--version=" + *version, "--flavour=" + *flavour}} {
		if err := stream(t.Context(), "go", append([]string{"run", "./cluster/demo"}, step...)...); err != nil {
			t.Fatalf("cannot %s: %v", step[0], err)
		}
	}
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"PodsHaveFamilies", f.podsHaveFamilies},
		{"Answers", answers},
		{"ServesIPv6Backend", f.servesIPv6Backend},
		{"ServesAllPortsByIPv6", f.servesAllPortsByIPv6},
		{"ReachesTargets", f.reachesTargets},
	} {
		if !t.Run(step.name, step.run) {
			return
		}
	}
}

// familiesOf returns the family of each address.
func familiesOf(t *testing.T, addrs []string) []corev1.IPFamily {
	t.Helper()
	var out []corev1.IPFamily
	for _, s := range addrs {
		a, err := netip.ParseAddr(s)
		if err != nil {
			t.Fatalf("cannot parse address: %v", err)
		}
		if a.Is4() {
			out = append(out, corev1.IPv4Protocol)
			continue
		}
		out = append(out, corev1.IPv6Protocol)
	}
	return out
}

// podsHaveFamilies checks the network of the cluster: without it, the other steps would prove
// nothing. All proxies are Ready.
func (f ipFamily) podsHaveFamilies(t *testing.T) {
	kubectl(t, "wait", "pod", "-l", "gateway.tailscale.com/endpoints=proxies", "-n", namespace, "--for=condition=Ready", "--timeout=2m")
	got := familiesOf(t, strings.Fields(jsonpath(t, "pod", "proxies-ingress-0", "{.status.podIPs[*].ip}")))
	if !slices.Equal(got, f.families) {
		t.Fatalf("the proxy has addresses of %v, want %v", got, f.families)
	}
}

// serviceAddresses returns the addresses of a service in the tailnet, IPv4 first.
func serviceAddresses(t *testing.T, name string) []string {
	t.Helper()
	var out []string
	eventually(t, patience, "addresses of "+name, func() string {
		out = strings.Fields(jsonpathIn(t, familiesNamespace, "tailscaleservices", name, "{.status.vipServiceStatus.addresses[*]}"))
		if len(out) != 2 {
			return fmt.Sprintf("the addresses are %v", out)
		}
		return ""
	})
	return out
}

// answersAt waits until the backend answers at an address of the tailnet.
func answersAt(t *testing.T, address string) {
	t.Helper()
	u := "http://" + netip.AddrPortFrom(netip.MustParseAddr(address), 8080).String() + "/hostname"
	eventually(t, patience, "answer of "+u, func() string {
		out, err := curl(t, u)
		if err != nil || !strings.HasPrefix(out, "six-") {
			return fmt.Sprintf("%q, %v", out, err)
		}
		return ""
	})
}

// servesIPv6Backend requests a service whose backend has only IPv6 by both of its addresses:
// tailscaled serves it, because the kernel can forward only one of them.
func (f ipFamily) servesIPv6Backend(t *testing.T) {
	labCommand(t, "tailnet-client", "db")
	domain := strings.TrimSuffix(strings.TrimPrefix(vipURL(t, "web"), "http://web."), "/")
	apply(t, fmt.Sprintf(familiesManifest, addressOf(t, "db"), "db."+domain))
	for _, a := range serviceAddresses(t, "six") {
		answersAt(t, a)
	}
	for _, pod := range []string{"kernel-ingress-0", "kernel-egress-0", "userspace-egress-0"} {
		kubectl(t, "wait", "pod", pod, "-n", familiesNamespace, "--for=condition=Ready", "--timeout=4m")
	}
	kubectl(t, "wait", "tailscaleservices", "six", "-n", familiesNamespace, "--for=condition=Ready", "--timeout=2m")
}

// servesAllPortsByIPv6 requests a service with all ports by its IPv6 address. Only the kernel can
// forward it, and clients that use IPv4 do not reach it.
func (f ipFamily) servesAllPortsByIPv6(t *testing.T) {
	v6 := serviceAddresses(t, "six-all")[1]
	answersAt(t, v6)
	eventually(t, patience, "answer by UDP", func() string {
		out, err := labOutput(t, "tailnet-udp", netip.AddrPortFrom(netip.MustParseAddr(v6), 8081).String(), "hostname")
		if err != nil || !strings.HasPrefix(out, "six-") {
			return fmt.Sprintf("%q, %v", out, err)
		}
		return ""
	})
}

// reachesTargets has a pod without Tailscale connect to a device by each address of the targets'
// Services, which are of all the cluster's families.
func (f ipFamily) reachesTargets(t *testing.T) {
	apply(t, fmt.Sprintf(prober, familiesNamespace, "prober"))
	kubectl(t, "wait", "pod/prober", "-n", familiesNamespace, "--for=condition=Ready", "--timeout=2m")
	for _, target := range []struct {
		service, protocol string
		port              int
	}{
		{"userspace-address", "http", 8080},
		{"userspace-name", "http", 8080},
		{"kernel-address", "http", 8080},
		{"kernel-name", "http", 8080},
		{"kernel-udp", "udp", 8081},
	} {
		var s corev1.Service
		eventually(t, patience, "Service "+target.service, func() string {
			read(t, familiesNamespace, "service", target.service, &s)
			if s.Spec.ClusterIP == "" {
				return "there is none"
			}
			return ""
		})
		if p := s.Spec.IPFamilyPolicy; p == nil || *p != corev1.IPFamilyPolicyPreferDualStack {
			t.Errorf("the policy of Service %s is %v", target.service, p)
		}
		if got := familiesOf(t, s.Spec.ClusterIPs); !slices.Equal(got, f.families) {
			t.Errorf("Service %s has addresses of %v, want %v", target.service, got, f.families)
		}
		for _, a := range s.Spec.ClusterIPs {
			reaches(t, familiesNamespace, target.protocol, a, target.port, patience)
		}
		// Clients find it by its name.
		reaches(t, familiesNamespace, target.protocol, target.service, target.port, patience)
	}
}
