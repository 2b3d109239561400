// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
	"github.com/tailscale-gateway/tailscale-gateway/test/load"
)

// worksWithoutControllers checks that the proxies serve while the controllers are stopped, and
// while their agents crash or cannot reach the API server.
func worksWithoutControllers(t *testing.T) {
	const pod = "proxies-ingress-0"
	stopControllers(t)
	// The parallel steps are over: a rollout restarts nothing of theirs.
	setsBudget(t)
	defer startControllers(t)
	previous := mainContainer(t, pod)

	t.Run("WithdrawsUnhealthyBackend", withdrawsAndReturns)
	t.Run("AgentKilled", func(t *testing.T) {
		losesNothing(t, func() { killAgent(t, pod) })
	})
	// Services stay advertised. Changes take longer: tailscaled first writes its preferences to its
	// state Secret, and gives up after 30 s (ipn/store/kubestore).
	t.Run("NoAPIServer", func(t *testing.T) {
		heal := cutOff(t, pod)
		defer heal()
		losesNothing(t, func() { killAgent(t, pod) })
	})
	eventually(t, patience, "agent ready", func() string {
		if !agentReady(t, pod) {
			return "the agent is not ready"
		}
		return ""
	})
	if current := mainContainer(t, pod); current != previous {
		t.Errorf("the proxy was restarted: container was %s, is %s", previous, current)
	}
}

// stopControllers stops Crossplane first: otherwise Crossplane starts the others again.
func stopControllers(t *testing.T) {
	t.Helper()
	stop := func(pods string, deployments ...string) {
		kubectl(t, append([]string{"scale", "deployment", "-n", crossplaneNamespace, "--replicas=0"}, deployments...)...)
		eventually(t, patience, "no pod of "+strings.Join(deployments, ", "), func() string {
			return kubectl(t, "get", "pods", "-n", crossplaneNamespace, "-l", pods, "-o=name", "--ignore-not-found")
		})
	}
	stop("app=crossplane", "crossplane", "crossplane-rbac-manager")
	stop("", "--all")
}

// startControllers starts all controllers and waits until a change reaches the tailnet, which needs
// all of them.
func startControllers(t *testing.T) {
	t.Helper()
	kubectl(t, "scale", "deployment", "-n", crossplaneNamespace, "--all", "--replicas=1")
	comment := "Changed at " + time.Now().Format(time.TimeOnly)
	kubectl(t, "patch", "tailscaleservices", "web", "-n", namespace, "--type=merge", `--patch={"spec":{"vipService":{"comment":"`+comment+`"}}}`)
	took := eventually(t, patience, "change of svc:web", func() string {
		s, err := tailnetClient(t).VIPServices().Get(t.Context(), "svc:web")
		if err != nil || s.Comment != comment {
			return fmt.Sprintf("the service is %+v, %v", s, err)
		}
		return ""
	})
	t.Logf("controllers work again after %s", took.Round(100*time.Millisecond))
}

// mainContainer returns the ID of the proxy's container, which changes with a restart.
func mainContainer(t *testing.T, pod string) string {
	t.Helper()
	return jsonpath(t, "pod", pod, "{.metadata.uid} {.status.containerStatuses[*].containerID}")
}

// losesNothing sends requests to the service without a pause while fn runs, and expects a response
// to each.
func losesNothing(t *testing.T, fn func()) {
	t.Helper()
	r := underLoad(t, func() {
		// The load reaches the service before fn starts.
		answered(t, "web", "web", patience)
		fn()
	}, "--rate=20", "--new-connections", vipURL(t, "web"))
	if r.Lost > 0 {
		t.Error(r)
	}
}

// underLoad has the lab send requests to a URL while fn runs. The arguments are those of `lab
// load`.
func underLoad(t *testing.T, fn func(), args ...string) load.Report {
	t.Helper()
	l, err := load.StartProcess(t.Context(), lab, args...)
	if err != nil {
		t.Fatal(err)
	}
	fn()
	return ended(t, l)
}

// ended ends a load that must have had responses.
func ended(t *testing.T, l *load.Process) load.Report {
	t.Helper()
	if err := l.Stop(); err != nil {
		t.Fatal(err)
	}
	r, err := l.Wait()
	if err != nil {
		t.Fatal(err)
	}
	t.Log(r)
	if r.Answered() == 0 {
		t.Errorf("no request got a response: %s", r)
	}
	return r
}

// killAgent kills the agent of a pod of the quickstart, and waits until another one runs.
func killAgent(t *testing.T, pod string) {
	t.Helper()
	old := agentOf(t, pod)
	if old == 0 {
		t.Fatalf("pod %s has no agent", pod)
	}
	if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
		t.Fatalf("cannot kill the agent: %v", err)
	}
	eventually(t, patience, "another agent of "+pod, func() string {
		if current := agentOf(t, pod); current == 0 || current == old {
			return "no agent runs yet"
		}
		return ""
	})
	// A ready agent has listed and probed its endpoints. Without an API server it never becomes
	// ready.
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for !agentReady(t, pod) {
		select {
		case <-deadline.C:
			return
		case <-tick.C:
		}
	}
}

func agentReady(t *testing.T, pod string) bool {
	t.Helper()
	return jsonpath(t, "pod", pod, "{.status.initContainerStatuses[?(@.name=='"+proxy.ContainerAgent+"')].ready}") == "true"
}

// agentOf returns the process ID of a pod's agent, or 0 if there is none.
func agentOf(t *testing.T, pod string) int {
	t.Helper()
	for pid := range processes(t, proxy.EnvPodName+"="+pod, proxy.EnvPodNamespace+"="+namespace, proxy.EnvEndpoints+"=proxies") {
		return pid
	}
	return 0
}

// processes returns the processes whose environment has all of these variables. Processes of the
// lab's containers are processes of this machine.
func processes(t *testing.T, env ...string) iter.Seq[int] {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	return func(yield func(int) bool) {
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				continue // It has ended.
			}
			environ := strings.Split(string(b), "\x00")
			if slices.ContainsFunc(env, func(e string) bool { return !slices.Contains(environ, e) }) {
				continue
			}
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
			if err != nil {
				t.Fatal(err)
			}
			if !yield(pid) {
				return
			}
		}
	}
}

// cutOff drops the packets of a pod to the API server until heal is called. The test fails if the
// pod sent none.
func cutOff(t *testing.T, pod string) (heal func()) {
	t.Helper()
	iptables := func(args ...string) string {
		out, err := exec.Command("ip", append([]string{"netns", "exec", "tsgw-one", "iptables", "--table=raw"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("iptables %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	ip := jsonpath(t, "pod", pod, "{.status.podIP}")
	rule := []string{"--source", ip, "--destination", jsonpathIn(t, "default", "service", "kubernetes", "{.spec.clusterIP}"), "--protocol", "tcp", "--jump", "DROP"}
	iptables(append([]string{"--insert", "PREROUTING"}, rule...)...)
	return func() {
		t.Helper()
		counted := iptables("--list", "PREROUTING", "--verbose", "--numeric", "--exact")
		iptables(append([]string{"--delete", "PREROUTING"}, rule...)...)
		for line := range strings.Lines(counted) {
			if f := strings.Fields(line); slices.Contains(f, ip) && f[0] != "0" {
				return
			}
		}
		t.Errorf("the pod did not try to reach the API server: nothing was cut off\n%s", counted)
	}
}
