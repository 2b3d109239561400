// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && paths

package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"
)

// slowRoundTrip is the least time that a request takes in a lab with slow paths: its connection
// and its response each cross the relay and return.
const slowRoundTrip = 300 * time.Millisecond

// TestSlowPaths runs the quickstart, egress and a failover where nodes have no direct paths: all
// traffic is relayed, with round trips of 150 ms to the relay, 1% loss and an MTU of 1280.
func TestSlowPaths(t *testing.T) {
	labRun(t, "up", "--install", "--slow-paths")
	for _, step := range [][]string{{"install", "--version=" + *version, "--flavour=" + *flavour}, {"quickstart"}} {
		if err := stream(t.Context(), "go", append([]string{"run", "./cluster/demo"}, step...)...); err != nil {
			t.Fatalf("cannot %s: %v", step[0], err)
		}
	}
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"Answers", answersSlowly},
		{"IsRelayed", isRelayed},
		{"ReachesTargets", reachesTargetsSlowly},
		{"CarriesLargeResponses", carriesLargeResponses},
		{"HandsOver", handsOver},
		{"SurvivesKilledPod", survivesKilledPod},
		{"UsesStaticEndpoints", usesStaticEndpoints},
	} {
		if !t.Run(step.name, step.run) {
			return
		}
	}
}

func answersSlowly(t *testing.T) {
	answered(t, "web", "web", patience)
	began := time.Now()
	if _, err := curl(t, vipURL(t, "web")); err != nil {
		t.Fatalf("the service does not answer: %v", err)
	}
	if took := time.Since(began); took < slowRoundTrip {
		t.Errorf("a request took %s: the path is not slow, and the test proves nothing", took)
	}
}

// A clientPeer is what the client knows of a peer. CurAddr is empty unless the path is direct.
type clientPeer struct {
	HostName, CurAddr, Relay string
	RxBytes                  int64
}

// clientPeers returns the peers of the client.
func clientPeers(t *testing.T) map[string]clientPeer {
	t.Helper()
	st := struct{ Peer map[string]clientPeer }{}
	if err := json.Unmarshal([]byte(labCommand(t, "tailscale", "status", "--json")), &st); err != nil {
		t.Fatalf("cannot parse the client's status: %v", err)
	}
	return st.Peer
}

// isRelayed checks that the client sends to the proxies through DERP.
func isRelayed(t *testing.T) {
	relayed := 0
	for _, p := range clientPeers(t) {
		if p.CurAddr != "" {
			t.Errorf("the path to %s is direct, by %s", p.HostName, p.CurAddr)
		}
		if p.RxBytes > 0 && p.Relay != "" {
			relayed++
		}
	}
	if relayed == 0 {
		t.Error("the client has received nothing through a relay")
	}
}

// carriesLargeResponses requests more than fits into one packet: a path that drops large packets
// without a word would hold them for ever.
func carriesLargeResponses(t *testing.T) {
	const size = 6000
	q := url.Values{"host": {"out-device"}, "port": {"8080"}, "protocol": {"http"}, "request": {"echo?msg=" + strings.Repeat("x", size)}, "tries": {"1"}}
	eventually(t, patience, "a large response", func() string {
		out, err := tryRun(t, "", "kubectl", "get", "--raw", "/api/v1/namespaces/"+namespace+"/pods/prober:8080/proxy/dial?"+q.Encode())
		if err != nil {
			return err.Error()
		}
		if n := strings.Count(out, "x"); n < size {
			return fmt.Sprintf("the response has %d bytes of %d", n, size)
		}
		return ""
	})
}

// reachesTargetsSlowly has a pod without Tailscale connect to a device and to a service.
func reachesTargetsSlowly(t *testing.T) {
	labCommand(t, "tailnet-client", "db")
	labCommand(t, "tailnet-client", "router", "--route=10.99.0.0/24")
	apply(t, fmt.Sprintf(prober, namespace, "prober"))
	kubectl(t, "wait", "pod/prober", "-n", namespace, "--for=condition=Ready", "--timeout=2m")
	applyEgress(t, "out", 2)
	for _, target := range []string{"device", "name", "behind"} {
		reaches(t, namespace, "http", "out-"+target, 8080, patience)
	}
	reaches(t, namespace, "http", "out-service", 80, patience)
}

// handsOver replaces one pod after the other under load, so also the one that has the service's
// address. Connections get lost on such a path by themselves: one in twenty may.
func handsOver(t *testing.T) {
	// scale counts all proxies.
	kubectl(t, "delete", "tailscaleendpoints", "out", "-n", namespace, "--timeout=4m")
	scale(t, 2)
	r := underLoad(t, func() {
		answered(t, "web", "web", patience)
		kubectl(t, "rollout", "restart", "statefulset/proxies-ingress", "-n", namespace)
		kubectl(t, "rollout", "status", "statefulset/proxies-ingress", "-n", namespace, "--timeout=8m")
		answered(t, "web", "web", patience)
	}, "--rate=5", "--new-connections", "--for=15m", vipURL(t, "web"))
	if 20*r.Lost > r.Requests {
		t.Error(r)
	}
}

// survivesKilledPod kills each host without a word: the other answers, after control has moved the
// service.
func survivesKilledPod(t *testing.T) {
	for i := range 2 {
		pod := fmt.Sprintf("proxies-ingress-%d", i)
		kubectl(t, "delete", "pod", pod, "-n", namespace, "--force", "--grace-period=0")
		took := answered(t, "web", "web", patience)
		t.Logf("answered %s after %s was killed", took.Round(100*time.Millisecond), pod)
		kubectl(t, "wait", "pod", pod, "-n", namespace, "--for=condition=Ready", "--timeout=5m")
	}
}

// usesStaticEndpoints opens node ports, which the firewall of such a lab lets pass: the client's path
// to a proxy becomes a direct one by the node's address and the port, and the Machine says so.
func usesStaticEndpoints(t *testing.T) {
	if out, err := tryRun(t, "", "helm", "upgrade", "tailscale-gateway", "package/charts/tailscale-gateway", "-n", "crossplane-system", "--reset-then-reuse-values", "--set=provider.staticEndpoints=true", "--wait"); err != nil {
		t.Fatalf("cannot upgrade the chart: %v\n%s", err, out)
	}
	kubectl(t, "patch", "tailscaletailnet", "quickstart", "--type=merge", "-p", `{"spec": {"allowedNamespaces": {"from": "Grants", "grants": [{"names": ["`+namespace+`"], "staticEndpoints": true}]}}}`)
	kubectl(t, "patch", "tailscaleendpoints", "proxies", "-n", namespace, "--type=merge", "-p", `{"spec": {"proxy": {"staticEndpoints": {"addressType": "InternalIP"}}}}`)

	node := kubectl(t, "get", "nodes", `-o=jsonpath={.items[0].status.addresses[?(@.type=="InternalIP")].address}`)
	direct := map[string]bool{}
	eventually(t, 2*patience, "direct path", func() string {
		services := kubectl(t, "get", "services", "-n", namespace, `-o=jsonpath={range .items[?(@.spec.type=="NodePort")]}{.spec.ports[0].nodePort} {end}`)
		for _, port := range strings.Fields(services) {
			direct[net.JoinHostPort(node, port)] = true
		}
		if _, err := curl(t, vipURL(t, "web")); err != nil {
			return err.Error()
		}
		var paths []string
		for _, p := range clientPeers(t) {
			if direct[p.CurAddr] {
				t.Logf("the path to %s is direct, by %s", p.HostName, p.CurAddr)
				return ""
			}
			paths = append(paths, p.HostName+" "+p.CurAddr)
		}
		return fmt.Sprintf("node ports %v, peers %v", direct, paths)
	})
	// Agents count every five minutes.
	eventually(t, 2*patience, "direct path in the status", func() string {
		if _, err := curl(t, vipURL(t, "web")); err != nil {
			return err.Error()
		}
		counts := kubectl(t, "get", "machines.tailnet.gateway.tailscale.com", "-n", namespace, "-o=jsonpath={.items[*].status.agent.paths.direct}")
		for _, n := range strings.Fields(counts) {
			if n != "0" {
				return ""
			}
		}
		return "direct paths of the Machines: " + counts
	})
}
