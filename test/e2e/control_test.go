// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && control

package e2e

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
)

// moreProxies are further hosts of the quickstart's service.
const moreProxies = `apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleEndpoints
metadata:
  name: more
  namespace: quickstart
  labels:
    app: web
spec:
  tailnet: quickstart
  proxy:
    replicas: 2
    connectionType: ingress
`

// controlOutage is how long control is away, from before the pods start.
const controlOutage = 2 * time.Minute

// proxySelector selects the pods of both TailscaleEndpoints.
const proxySelector = meta.LabelEndpoints + " in (proxies, more)"

// proxyMachines are the Machines of both TailscaleEndpoints.
var proxyMachines = []string{"more-ingress-0", "more-ingress-1", "proxies-ingress-0", "proxies-ingress-1"}

// A machineIdentity is what a machine must not lose.
type machineIdentity struct {
	NodeID    string
	Addresses []string
	Approval  string
}

// identities returns the identities of the Machines, from the tailnet's view.
func identities(t *testing.T) map[string]machineIdentity {
	t.Helper()
	b, err := rawState(t.Context(), tailnetOne.env(t, "TAILNET_API"))
	if err != nil {
		t.Fatalf("cannot read the tailnet: %v", err)
	}
	var s struct {
		Devices []struct {
			NodeID    string   `json:"nodeId"`
			Addresses []string `json:"addresses"`
		} `json:"devices"`
		Services []struct {
			Name  string `json:"name"`
			Hosts []struct {
				NodeID        string `json:"nodeId"`
				ApprovalLevel string `json:"approvalLevel"`
			} `json:"hosts"`
		} `json:"services"`
	}
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatalf("cannot parse the tailnet: %v", err)
	}
	out := map[string]machineIdentity{}
	for _, m := range proxyMachines {
		i := machineIdentity{NodeID: jsonpath(t, "machines.tailnet.gateway.tailscale.com", m, "{.metadata.annotations.gateway\\.tailscale\\.com/node-id}")}
		for _, d := range s.Devices {
			if d.NodeID == i.NodeID {
				i.Addresses = d.Addresses
			}
		}
		for _, v := range s.Services {
			for _, h := range v.Hosts {
				if v.Name == "svc:web" && h.NodeID == i.NodeID {
					i.Approval = h.ApprovalLevel
				}
			}
		}
		out[m] = i
	}
	return out
}

// allHost waits until each Machine has a device that is an approved host.
func allHost(t *testing.T) map[string]machineIdentity {
	t.Helper()
	var out map[string]machineIdentity
	eventually(t, patience, "all machines host svc:web", func() string {
		out = identities(t)
		for name, i := range out {
			if i.NodeID == "" || len(i.Addresses) != 2 || !strings.HasPrefix(i.Approval, "approved") {
				return fmt.Sprintf("%s is %+v", name, i)
			}
		}
		return ""
	})
	return out
}

// podsOf returns the UIDs of the proxies' pods.
func podsOf(t *testing.T) []string {
	t.Helper()
	return strings.Fields(kubectl(t, "get", "pods", "-n", namespace, "-l", proxySelector, "-o=jsonpath={.items[*].metadata.uid}"))
}

// loginKeys returns the IDs of the keys of the tailnet that are not revoked, used ones included.
func loginKeys(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, k := range tailnetState(t).Keys {
		out = append(out, k.ID)
	}
	slices.Sort(out)
	return out
}

// controlFails makes control fail until heal is called, or the test ends.
func controlFails(t *testing.T, args ...string) (heal func()) {
	t.Helper()
	labCommand(t, append([]string{"tailnet-fault", "--on=control"}, args...)...)
	healed := false
	heal = func() {
		if !healed {
			healed = true
			// Also after the test, whose context has ended.
			if out, err := exec.Command(lab, "tailnet-fault", "--clear").CombinedOutput(); err != nil {
				t.Errorf("cannot end the fault: %v\n%s", err, out)
			}
		}
	}
	t.Cleanup(heal)
	return heal
}

// TestControl rolls all proxies of two TailscaleEndpoints at once while control is away, and restarts
// a container in place: no machine loses its identity.
func TestControl(t *testing.T) {
	demo(t)
	apply(t, moreProxies)
	kubectl(t, "patch", "tailscaleendpoints", "proxies", "-n", namespace, "--type=merge", `--patch={"spec":{"proxy":{"replicas":2}}}`)
	allHost(t)
	answered(t, "web", "web", patience)
	for _, way := range []struct {
		name   string
		faults []string
	}{
		{"Refused", []string{"--refuse"}},
		{"TooManyRequests", []string{"--status=429", "--retry-after=5s"}},
		{"Unavailable", []string{"--status=503"}},
	} {
		t.Run(way.name, func(t *testing.T) { rollsWithoutControl(t, way.faults) })
	}
	t.Run("RestartedContainer", restartsWithoutControl)
}

func rollsWithoutControl(t *testing.T, faults []string) {
	previous, keys, old := allHost(t), loginKeys(t), podsOf(t)
	heal := controlFails(t, faults...)
	kubectl(t, "delete", "pods", "-n", namespace, "-l", proxySelector, "--wait=false")
	eventually(t, patience, "new pods", func() string {
		current := podsOf(t)
		if len(current) != len(proxyMachines) || slices.ContainsFunc(current, func(p string) bool { return slices.Contains(old, p) }) {
			return fmt.Sprintf("the pods are %v", current)
		}
		return ""
	})
	began := time.Now()
	for _, name := range []string{"proxies", "more"} {
		message := conditionOf(t, "tailscaleendpoints", name, string(meta.TypeMachinesReady), "False", string(meta.ReasonLoginFailed), patience)
		t.Logf("%s: %s", name, message)
	}
	eventually(t, controlOutage+time.Minute, "the end of the outage", func() string {
		if diff := cmp.Diff(deviceIDs(previous), deviceIDs(identities(t))); diff != "" {
			t.Fatalf("an identity is lost while control is away: -want, +got:\n%s", diff)
		}
		if remaining := controlOutage - time.Since(began); remaining > 0 {
			return remaining.String() + " to go"
		}
		return ""
	})
	heal()
	keptIdentities(t, previous, keys)
}

// restartsWithoutControl kills a container, whose next start the agent cannot hold: containerboot asks
// for a key, and the provider has it restarted.
func restartsWithoutControl(t *testing.T) {
	const pod = "proxies-ingress-0"
	previous, keys := allHost(t), loginKeys(t)
	heal := controlFails(t, "--refuse")
	killed := 0
	for pid := range processes(t, proxy.EnvPodName+"="+pod, "TS_KUBE_SECRET="+pod) {
		_ = syscall.Kill(pid, syscall.SIGKILL) // One may end with the other.
		killed++
	}
	if killed == 0 {
		t.Fatalf("pod %s has no tailscale container", pod)
	}
	message := conditionOf(t, "machines.tailnet.gateway.tailscale.com", pod, "Ready", "False", string(meta.ReasonLoginFailed), patience)
	t.Logf("%s: %s", pod, message)
	eventually(t, patience, "a record of the request for a key", func() string {
		record := jsonpath(t, "machines.tailnet.gateway.tailscale.com", pod, "{.metadata.annotations.gateway\\.tailscale\\.com/machine-record}")
		if !strings.Contains(record, `"since"`) {
			return "there is none"
		}
		return ""
	})
	heal()
	keptIdentities(t, previous, keys)
}

// keptIdentities waits until all proxies are back, and checks that they have their identities, and
// that no key was issued.
func keptIdentities(t *testing.T, previous map[string]machineIdentity, keys []string) {
	t.Helper()
	took := eventually(t, 2*patience, "ready pods", func() string {
		for _, m := range proxyMachines {
			if got := jsonpath(t, "pod", m, "{.status.conditions[?(@.type=='Ready')].status}"); got != "True" {
				return fmt.Sprintf("pod %s is Ready %s", m, got)
			}
		}
		return ""
	})
	t.Logf("back %s after control", took.Round(time.Second))
	if diff := cmp.Diff(previous, allHost(t)); diff != "" {
		t.Errorf("identities: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(keys, loginKeys(t)); diff != "" {
		t.Errorf("keys: -want, +got:\n%s", diff)
	}
	answered(t, "web", "web", patience)
}

func deviceIDs(all map[string]machineIdentity) map[string]string {
	out := map[string]string{}
	for m, i := range all {
		out[m] = i.NodeID + " " + strings.Join(i.Addresses, " ")
	}
	return out
}
