// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
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
)

// standsAlone has the proxies do their work while nothing else of ours runs, and
// while their agents die or cannot reach the API server.
func standsAlone(t *testing.T) {
	const pod = "proxies-ingress-0"
	stopControllers(t)
	// What runs side by side is over. Now this restarts nothing.
	setsBudget(t)
	defer startControllers(t)
	before := mainContainer(t, pod)

	t.Run("WithdrawsSickBackend", withdrawsAndReturns)
	t.Run("AgentKilled", func(t *testing.T) {
		losesNothing(t, func() { killAgent(t, pod) })
	})
	// What works goes on. News takes longer: tailscaled saves what it is told in its
	// state Secret first, and gives that up after 30 s (ipn/store/kubestore).
	t.Run("NoAPIServer", func(t *testing.T) {
		heal := cutOff(t, pod)
		defer heal()
		losesNothing(t, func() { killAgent(t, pod) })
	})
	eventually(t, patience, "agent ready", func() string {
		if !agentReady(t, pod) {
			return "it is not"
		}
		return ""
	})
	if after := mainContainer(t, pod); after != before {
		t.Errorf("the proxy was restarted: it was %s, it is %s", before, after)
	}
}

// stopControllers stops Crossplane first: it would start the others again.
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

// startControllers waits until a change reaches the tailnet, which takes all of them.
func startControllers(t *testing.T) {
	t.Helper()
	kubectl(t, "scale", "deployment", "-n", crossplaneNamespace, "--all", "--replicas=1")
	comment := "Changed at " + time.Now().Format(time.TimeOnly)
	kubectl(t, "patch", "tailscaleservices", "web", "-n", namespace, "--type=merge", `--patch={"spec":{"vipService":{"comment":"`+comment+`"}}}`)
	took := eventually(t, patience, "change of svc:web", func() string {
		s, err := tailnetClient(t).VIPServices().Get(t.Context(), "svc:web")
		if err != nil || s.Comment != comment {
			return fmt.Sprintf("it is %+v, %v", s, err)
		}
		return ""
	})
	t.Logf("back at work after %s", took.Round(100*time.Millisecond))
}

// mainContainer tells a run of a proxy's own container from another.
func mainContainer(t *testing.T, pod string) string {
	t.Helper()
	return jsonpath(t, "pod", pod, "{.metadata.uid} {.status.containerStatuses[*].containerID}")
}

// losesNothing asks the service without a pause while something is done, and wants
// an answer to each request.
func losesNothing(t *testing.T, do func()) {
	t.Helper()
	r := underLoad(t, func() {
		// By then it is asked, too.
		answered(t, "web", "web", patience)
		do()
	}, "--rate=20", "--new-connections", vipURL(t, "web"))
	if r.Failed > 0 {
		t.Errorf("%d of %d requests were lost: %s", r.Failed, r.Requests+r.Failed, strings.Join(r.Errors, "; "))
	}
}

// A report is how requests went.
type report struct {
	Requests, Failed int

	// P99 in seconds.
	P99    float64
	Errors []string
}

// underLoad has the lab ask a URL, as the arguments of `lab load` say, while
// something is done.
func underLoad(t *testing.T, do func(), args ...string) report {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), lab, append([]string{"load"}, args...)...)
	out, complaints := &bytes.Buffer{}, &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, complaints
	if err := cmd.Start(); err != nil {
		t.Fatalf("cannot ask: %v", err)
	}
	do()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatalf("cannot stop asking: %v", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("cannot ask: %v\n%s", err, complaints)
	}
	r := report{}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("cannot parse the report: %v\n%s%s", err, out, complaints)
	}
	t.Logf("%d requests, %d lost", r.Requests, r.Failed)
	if r.Requests == 0 {
		t.Error("nothing was answered")
	}
	return r
}

// killAgent ends the agent of a pod of the quickstart as a crash does, and waits
// until another one runs.
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
		if now := agentOf(t, pod); now == 0 || now == old {
			return "none runs yet"
		}
		return ""
	})
	// It has listed and probed once it is ready. Without an API server it never is.
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

// agentOf is the process of a pod's agent. It is 0 if there is none.
func agentOf(t *testing.T, pod string) int {
	t.Helper()
	for pid := range processes(t, proxy.EnvPodName+"="+pod, proxy.EnvPodNamespace+"="+namespace, proxy.EnvEndpoints+"=proxies") {
		return pid
	}
	return 0
}

// processes that have all of these in their environment. Those of the lab's
// containers are this machine's.
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
				continue // It ended meanwhile.
			}
			has := strings.Split(string(b), "\x00")
			if slices.ContainsFunc(env, func(e string) bool { return !slices.Contains(has, e) }) {
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

// cutOff drops what a pod sends to the API server, until heal is called. That fails
// the test if the pod sent nothing.
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
