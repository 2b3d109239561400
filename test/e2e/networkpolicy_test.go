// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// guardManifest has proxies for both directions, with a target for all clients and one with its
// clients listed.
const guardManifest = `apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleEndpoints
metadata: {name: guard, namespace: quickstart, labels: {app: guard}}
spec:
  tailnet: quickstart
  proxy:
    replicas: 1
    connectionType: bidirectional%[3]s
  endpoints:
  - {name: common, tailscaleIP: %[1]q, port: 8080, protocol: HTTP}
  - {name: own, tailscaleFQDN: %[2]q, port: 8080, protocol: HTTP%[4]s}
---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleServices
metadata: {name: guard, namespace: quickstart}
spec:
  selector: {matchLabels: {app: guard}}
  vipService: {ports: ["tcp:80"], tags: ["tag:k8s"]}
  backends: [{name: web, port: 80}]
`

const (
	guardPolicy = `
    networkPolicy:
      clients: [{podSelector: {matchLabels: {app: friend}}}]
      metrics: [{podSelector: {matchLabels: {app: friend}}}]`
	guardOff = `
    networkPolicy: {enabled: false}`
	guardClients = `, clients: [{podSelector: {matchLabels: {app: stranger}}}]`
)

// Pods that connect to the proxies, by namespace and name. The pod in another namespace has the
// labels of a client.
const (
	friend    = namespace + "/friend"
	stranger  = namespace + "/stranger"
	outsider  = "default/friend"
	portAgent = 9093
)

// guards checks that only the clients of their policy reach proxies, while kubelet's probes and the
// tailnet keep working.
func guards(t *testing.T) {
	labCommand(t, "tailnet-client", "db")
	domain := strings.TrimSuffix(strings.TrimPrefix(vipURL(t, "web"), "http://web."), "/")
	guard := func(policy, clients string) {
		apply(t, fmt.Sprintf(guardManifest, addressOf(t, "db"), "db."+domain, policy, clients))
	}
	pods := []string{friend, stranger, outsider}
	for _, p := range pods {
		ns, name, _ := strings.Cut(p, "/")
		apply(t, fmt.Sprintf(prober, ns, name))
	}
	for _, p := range pods {
		ns, name, _ := strings.Cut(p, "/")
		kubectl(t, "wait", "pod/"+name, "-n", ns, "--for=condition=Ready", "--timeout=60s")
	}

	// Proxies become ready under their policy, so kubelet's probes pass it.
	guard(guardPolicy, guardClients)
	eventually(t, patience, "proxies under a policy", func() string { return unready(t) })
	reach(t, map[string][]string{friend: {"common", "metrics"}, stranger: {"own"}, outsider: {}})
	answered(t, "guard", "web", patience)

	closedToTailnet(t)
	closedPackages(t)

	// By default the policy admits the namespace only.
	guard("", "")
	targets := []string{"common", "own", "metrics"}
	reach(t, map[string][]string{friend: targets, stranger: targets, outsider: {"metrics"}})

	// The policy has stopped the connections.
	guard(guardOff, "")
	reach(t, map[string][]string{friend: targets, stranger: targets, outsider: targets})
	if remaining := kubectl(t, "get", "networkpolicies", "-n", namespace, "-o=name"); strings.Contains(remaining, "guard") {
		t.Errorf("a policy is left: %s", remaining)
	}

	guard(guardPolicy, guardClients)
	reach(t, map[string][]string{friend: {"common", "metrics"}, stranger: {"own"}, outsider: {}})
	answered(t, "guard", "web", patience)
	if missing := unready(t); missing != "" {
		t.Errorf("proxies did not stay ready: %s", missing)
	}

	kubectl(t, "delete", "tailscaleservices", "guard", "-n", namespace, "--timeout=2m")
	leavesNothing(t, "guard")
	if remaining := kubectl(t, "get", "networkpolicies", "-n", namespace, "-o=name"); strings.Contains(remaining, "guard") {
		t.Errorf("a policy is left: %s", remaining)
	}
	for _, p := range pods {
		ns, name, _ := strings.Cut(p, "/")
		kubectl(t, "delete", "pod", name, "-n", ns)
	}
}

// unready lists the guarded proxies that are not ready and those whose containers restarted.
func unready(t *testing.T) string {
	t.Helper()
	for _, set := range []string{"guard-egress", "guard-ingress"} {
		if got := jsonpath(t, "statefulset", set, "{.status.readyReplicas}"); got != "1" {
			return set + " has " + got + " ready pods"
		}
		if got := jsonpath(t, "pod", set+"-0", "{.status.containerStatuses[*].restartCount}{.status.initContainerStatuses[*].restartCount}"); strings.Trim(got, "0 ") != "" {
			return set + "-0 was restarted: " + got
		}
	}
	return ""
}

// closedToTailnet checks that devices of the tailnet reach no port of the pods other than those of
// services: the ports for kubelet, scrapers and clients of the cluster are closed.
func closedToTailnet(t *testing.T) {
	t.Helper()
	ports := strings.Fields(jsonpath(t, "tailscaleendpoints", "guard", "{.status.egressTargets[*].proxyPort}"))
	if len(ports) != 2 {
		t.Fatalf("want two ports of targets, got %q", ports)
	}
	for _, host := range []string{"quickstart-guard-egress-0", "quickstart-guard-ingress-0"} {
		for _, port := range append([]string{strconv.Itoa(portAgent)}, ports...) {
			u := "http://" + net.JoinHostPort(addressOf(t, host), port) + "/"
			if out, err := labOutput(t, "tailnet-curl", "--timeout=5s", u); err == nil || strings.Contains(out, "answered") {
				t.Errorf("%s of %s is open to the tailnet: %s", u, host, out)
			}
		}
	}
}

// closedPackages checks that pods reach only the metrics of Crossplane's packages: functions serve
// Crossplane alone.
func closedPackages(t *testing.T) {
	t.Helper()
	for kind, calls := range map[string]bool{"provider": false, "function": true} {
		pods := strings.Fields(kubectl(t, "get", "pods", "-n", "crossplane-system", "-l", "pkg.crossplane.io/"+kind, "-o=jsonpath={.items[*].status.podIP}"))
		if len(pods) == 0 {
			t.Errorf("there is no pod of a %s", kind)
		}
		for _, pod := range pods {
			eventually(t, patience, fmt.Sprintf("metrics of a %s at %s", kind, pod), func() string {
				if _, err := dialFrom(t, namespace, "friend", "http", pod, 8080); err != nil {
					return err.Error()
				}
				return ""
			})
			if !calls {
				continue
			}
			// A function closes connections without TLS: an open connection ends with another
			// error.
			if _, err := dialFrom(t, namespace, "friend", "http", pod, 9443); err == nil || !strings.Contains(err.Error(), "dial tcp") {
				t.Errorf("a pod that is not Crossplane's connects to the %s at %s: %v", kind, pod, err)
			}
		}
	}
}

// reach waits until each pod reaches its permitted targets and nothing else.
func reach(t *testing.T, may map[string][]string) {
	t.Helper()
	pod := jsonpath(t, "pod", "guard-egress-0", "{.status.podIP}")
	places := map[string]struct {
		host string
		port int
	}{
		"common":  {host: "guard-common." + namespace, port: 8080},
		"own":     {host: "guard-own." + namespace, port: 8080},
		"metrics": {host: pod, port: portAgent},
	}
	took := eventually(t, patience, "targets that pods reach", func() string {
		for from, allowed := range may {
			ns, name, _ := strings.Cut(from, "/")
			for place, to := range places {
				_, err := dialFrom(t, ns, name, "http", to.host, to.port)
				if want := slices.Contains(allowed, place); (err == nil) != want {
					return fmt.Sprintf("%s to %s: reached is %t, want %t: %v", from, place, err == nil, want, err)
				}
			}
		}
		return ""
	})
	t.Logf("the policy is in effect after %s", took.Round(100*time.Millisecond))
}
