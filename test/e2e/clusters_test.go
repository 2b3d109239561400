// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && clusters

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// sharedRoutes has a Gateway that leads to the service of examples/shared.yaml.
const sharedRoutes = "cluster/demo/shared-route.yaml"

// TestTwoClusters shares a service between two real clusters of one tailnet. A Gateway of the first
// cluster prefers the pods of this cluster, and sends requests to the second while there are none.
func TestTwoClusters(t *testing.T) {
	labRun(t, "up", "--install", "--clusters=2")
	demo(t)
	install(t, second)

	kubectl(t, "apply", "-f", "examples/shared.yaml")
	inSecond(t, readFile(t, "examples/shared.yaml"), "apply", "--server-side", "-f", "-")
	for cluster, status := range map[string]func() string{
		"one": func() string { return jsonpath(t, "tailscaleservices", "shared", "{.status.clusterCount}") },
		second: func() string {
			return inSecond(t, "", "get", "tailscaleservices", "shared", "-n", namespace, "-o=jsonpath={.status.clusterCount}")
		},
	} {
		took := eventually(t, patience, "members of the service, as cluster "+cluster+" sees them", func() string {
			if got := status(); got != "2" {
				return "status.clusterCount is " + got
			}
			return ""
		})
		t.Logf("cluster %s lists both members after %s", cluster, took.Round(time.Second))
	}

	apply(t, readFile(t, sharedRoutes))
	u := "http://" + addressOfGateway(t, "shared") + "/"
	answeredFrom(t, u, "web")
	eventually(t, patience, "the way to the other cluster", func() string {
		if got := jsonpath(t, "tailscaleendpoints", "shared", "{.status.egressTargets[*].readyProxies}"); got != "1" {
			return "ready egress proxies: " + got
		}
		return ""
	})

	t.Run("LosesNothingWhenScaledDown", func(t *testing.T) {
		r := underLoad(t, func() {
			answeredFrom(t, u, "web")
			kubectl(t, "scale", "deployment", "web", "-n", namespace, "--replicas=0")
			took := answeredFrom(t, u, farPrefix)
			t.Logf("the other cluster answers after %s", took.Round(100*time.Millisecond))
			kubectl(t, "scale", "deployment", "web", "-n", namespace, "--replicas=2")
			took = answeredFrom(t, u, "web")
			t.Logf("this cluster answers again after %s", took.Round(100*time.Millisecond))
		}, "--from=cluster", "--workers=4", "--rate=50", u)
		if r.Lost > 0 {
			t.Error(r)
		}
	})

	t.Run("RouteToServiceFailsOver", func(t *testing.T) {
		kubectl(t, "apply", "-f", "examples/service-failover.yaml")
		plain := "http://" + addressOfGateway(t, "plain") + "/"
		answeredFrom(t, plain, "web")
		kubectl(t, "scale", "deployment", "web", "-n", namespace, "--replicas=0")
		took := answeredFrom(t, plain, farPrefix)
		t.Logf("the other cluster answers after %s", took.Round(100*time.Millisecond))
		kubectl(t, "scale", "deployment", "web", "-n", namespace, "--replicas=2")
		answeredFrom(t, plain, "web")
		r := underLoad(t, func() {
			kubectl(t, "scale", "deployment", "web", "-n", namespace, "--replicas=0")
			answeredFrom(t, plain, farPrefix)
			// For a Service without any endpoint, Envoy Gateway would answer 503.
			kubectl(t, "wait", "--for=delete", "pod", "-l=app=web", "-n", namespace, "--timeout=2m")
			answeredFrom(t, plain, farPrefix)
			kubectl(t, "scale", "deployment", "web", "-n", namespace, "--replicas=2")
			took = answeredFrom(t, plain, "web")
			t.Logf("this cluster answers again after %s", took.Round(100*time.Millisecond))
		}, "--from=cluster", "--workers=4", "--rate=50", plain)
		if r.Lost > 0 {
			t.Error(r)
		}
		kubectl(t, "delete", "-f", "examples/service-failover.yaml", "--timeout=2m")
	})

	t.Run("SharesBySet", sharesBySet)
	t.Run("MulticlusterServices", multiclusterServices)

	t.Run("LosesNothingWhenDrained", func(t *testing.T) {
		drain := func(value string) {
			kubectl(t, "patch", "tailscaletailnet", "quickstart", "--type=merge", `--patch={"spec":{"drain":`+value+`}}`)
		}
		r := underLoad(t, func() {
			answeredFrom(t, u, "web")
			drain("true")
			took := answeredFrom(t, u, farPrefix)
			t.Logf("the other cluster answers requests of the Gateway after %s", took.Round(100*time.Millisecond))
			took = eventually(t, patience, "the end of the drain", func() string {
				if got := jsonpath(t, "tailscaleservices", "shared", `{.status.conditions[?(@.type=="Drained")]}`); !strings.Contains(got, "HostsWithdrawn") {
					return "Drained is " + got
				}
				return ""
			})
			t.Logf("the proxies have withdrawn the service after %s", took.Round(time.Second))
			drain("null")
			answeredFrom(t, u, "web")
		}, "--from=cluster", "--workers=4", "--rate=50", u)
		if r.Lost > 0 {
			t.Error(r)
		}
	})

	t.Run("LosesRequestsInFlightWhenKilled", func(t *testing.T) {
		const workers = 4
		r := underLoad(t, func() {
			answeredFrom(t, u, "web")
			// The endpoints stay in Kubernetes until kubelet restarts the containers.
			began := time.Now()
			for range 3 {
				killWeb(t)
			}
			answeredFrom(t, u, "web")
			t.Logf("this cluster answers again %s after its pods were killed", time.Since(began).Round(100*time.Millisecond))
		}, "--from=cluster", fmt.Sprintf("--workers=%d", workers), "--rate=50", u)
		if r.Lost > workers {
			t.Errorf("more than were in flight: %s", r)
		}
	})
}

// answeredFrom waits until ten requests in a row get responses from pods with this prefix.
func answeredFrom(t *testing.T, u, prefix string) time.Duration {
	t.Helper()
	return eventually(t, patience, "answers of pods "+prefix, func() string {
		for range 10 {
			got, err := labOutput(t, "curl", "--timeout=5s", u)
			if err != nil {
				return err.Error() + ": " + got
			}
			if !strings.HasPrefix(got, prefix+"-") {
				return "the response is " + got
			}
		}
		return ""
	})
}

// install installs the packages on another cluster, and the objects that examples/shared.yaml needs
// there.
func install(t *testing.T, cluster string) {
	t.Helper()
	prepareSecond(t, cluster)
	joinSecond(t, readFile(t, "examples/quickstart/tailnet.yaml"))
}

// joinSecond creates a TailscaleTailnet on the second cluster that leads to the lab's tailnet.
func joinSecond(t *testing.T, tailnet string) {
	t.Helper()
	api := fromLab(t, "TAILNET_API_IN_CLUSTER")
	patched := inSecond(t, tailnet, "patch", "--local", "-f", "-", "--type=merge", "-o=yaml",
		fmt.Sprintf(`--patch={"spec":{"apiURL":%q,"controlURL":%q}}`, api, api))
	inSecond(t, patched, "apply", "--server-side", "-f", "-")
}

// killWeb kills the web server processes in the pods of this cluster.
func killWeb(t *testing.T) {
	t.Helper()
	for _, pod := range strings.Fields(kubectl(t, "get", "pods", "-n", namespace, "-l=app=web", "-o=jsonpath={.items[*].metadata.name}")) {
		pids := slices.Collect(processes(t, "HOSTNAME="+pod, "KUBERNETES_SERVICE_PORT=443"))
		for _, pid := range pids {
			// The process may be that of the pause container, or have ended.
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Logf("cannot kill process %d of %s: %v", pid, pod, err)
			}
		}
	}
}
