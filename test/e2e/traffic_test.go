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

func vipURL(t *testing.T, service string) string {
	t.Helper()
	var dns string
	eventually(t, 2*time.Minute, "DNS name of "+service, func() string {
		dns = jsonpath(t, "tailscaleservices", service, "{.status.vipServiceStatus.dnsName}")
		if dns == "" {
			return "status.vipServiceStatus.dnsName is empty"
		}
		return ""
	})
	return "http://" + dns + "/"
}

// answered waits until a pod of the Deployment answers through the VIP.
func answered(t *testing.T, service, deployment string, timeout time.Duration) time.Duration {
	t.Helper()
	return answeredAt(t, vipURL(t, service), deployment, timeout)
}

// answeredAt waits until a pod of the Deployment answers at a URL in the tailnet.
func answeredAt(t *testing.T, u, deployment string, timeout time.Duration) time.Duration {
	t.Helper()
	return eventually(t, timeout, "answer of "+u, func() string {
		got, err := curl(t, u)
		if err != nil {
			return err.Error()
		}
		if !strings.HasPrefix(got, deployment+"-") {
			return fmt.Sprintf("the response is %q, want a pod of %s", got, deployment)
		}
		return ""
	})
}

func answers(t *testing.T) {
	answered(t, "web", "web", time.Minute)
}

// readyMeansAnswers sends one request to each new service as soon as it is Ready: no request after
// Ready may fail.
func readyMeansAnswers(t *testing.T) {
	for i := range 3 {
		name := fmt.Sprintf("ready-%d", i)
		apply(t, fmt.Sprintf(`
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleServices
metadata: {name: %s, namespace: %s}
spec:
  selector: {matchLabels: {app: web}}
  vipService: {ports: ["tcp:80"], tags: [tag:k8s]}
  backends: [{name: web, port: 80}]
`, name, namespace))
		kubectl(t, "wait", "tailscaleservices", name, "-n", namespace, "--for=condition=Ready", "--timeout=2m")
		u := "http://" + jsonpath(t, "tailscaleservices", name, "{.status.vipServiceStatus.dnsName}") + "/"
		if got, err := curl(t, u); err != nil || !strings.HasPrefix(got, "web-") {
			t.Errorf("TailscaleServices %s is Ready, and %s answers %q, %v", name, u, got, err)
		}
		if s := jsonpath(t, "tailscaleservices", name, `{.status.conditions[?(@.type=="Advertised")].status}`); s != "True" {
			t.Errorf("TailscaleServices %s is Ready while Advertised is %q", name, s)
		}
		kubectl(t, "delete", "tailscaleservices", name, "-n", namespace, "--wait", "--timeout=2m")
	}
}

func showsColumns(t *testing.T) {
	domain := strings.TrimSuffix(strings.TrimPrefix(vipURL(t, "web"), "http://web."), "/")
	for kind, wants := range map[string][]string{
		"tailscaletailnets":  {"quickstart", domain, "True"},
		"tailscaleendpoints": {"proxies", "quickstart", "quickstart-proxies-ingress-0", "AllReplicasReady"},
		"tailscaleservices":  {"web", "100.", "web." + domain, "HostsAdvertising"},
	} {
		// Columns may lag behind the service by one report.
		eventually(t, time.Minute, "columns of "+kind, func() string {
			out := kubectl(t, "get", kind, "-n", namespace)
			for _, w := range wants {
				if !strings.Contains(out, w) {
					return fmt.Sprintf("no %q in\n%s", w, out)
				}
			}
			return ""
		})
	}
}

func traces(t *testing.T) {
	for object, wants := range map[string][]string{
		"tailscaleservices.gateway.tailscale.com/web":      {"VIPService/web", "ServiceAttachment/"},
		"tailscaleendpoints.gateway.tailscale.com/proxies": {"MachineSet/proxies-ingress", "ServiceAccount/proxies-ingress", "Role/proxies-ingress", "RoleBinding/proxies-ingress", "Service/proxies-ingress", "NetworkPolicy/proxies-ingress", "ProxySet/proxies"},
	} {
		out, err := tryRun(t, "", "crossplane", "resource", "trace", "-n", namespace, object)
		if err != nil {
			t.Fatalf("cannot trace %s: %v\n%s", object, err, out)
		}
		for _, w := range wants {
			if !strings.Contains(out, w) {
				t.Errorf("trace of %s shows no %s:\n%s", object, w, out)
			}
		}
	}
}

func runsRestricted(t *testing.T) {
	if got := kubectl(t, "get", "namespace", namespace, "-o=jsonpath={.metadata.labels.pod-security\\.kubernetes\\.io/enforce}"); got != "restricted" {
		t.Fatalf("namespace enforces %q", got)
	}
	if got := kubectl(t, "get", "pods", "-n", namespace, "-o=jsonpath={.items[*].spec.containers[*].securityContext.privileged}{.items[*].spec.initContainers[*].securityContext.privileged}"); strings.Contains(got, "true") {
		t.Errorf("a pod is privileged: %q", got)
	}
}

// pods returns the UIDs and restart counts of the proxies, by pod.
func pods(t *testing.T) map[string]string {
	t.Helper()
	out := kubectl(t, "get", "pods", "-n", namespace, "-l", "gateway.tailscale.com/endpoints=proxies", "-o",
		"jsonpath={range .items[*]}{.metadata.name} {.metadata.uid}/{.status.containerStatuses[*].restartCount}/{.status.initContainerStatuses[*].restartCount}{\"\\n\"}{end}")
	ps := map[string]string{}
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) > 1 {
			ps[f[0]] = strings.Join(f[1:], " ")
		}
	}
	return ps
}

func scale(t *testing.T, replicas int) {
	t.Helper()
	kubectl(t, "patch", "tailscaleendpoints", "proxies", "-n", namespace, "--type=merge", fmt.Sprintf(`--patch={"spec":{"proxy":{"replicas":%d}}}`, replicas))
	eventually(t, 3*time.Minute, fmt.Sprintf("%d proxies", replicas), func() string {
		d, k, _ := tailnetState(t).ours()
		healthy := jsonpath(t, "tailscaleendpoints", "proxies", "{.status.healthyEndpoints}/{.status.totalEndpoints}")
		hosting := jsonpath(t, "tailscaleservices", "web", "{.status.healthyBackends}/{.status.totalBackends}")
		machines := len(strings.Fields(kubectl(t, "get", "machines", "-n", namespace, "-o=name")))
		secrets := len(strings.Fields(kubectl(t, "get", "secrets", "-n", namespace, "-l", "gateway.tailscale.com/machine", "-o=name")))
		want := fmt.Sprintf("%d/%d", replicas, replicas)
		if d != replicas || k != 0 || healthy != want || hosting != want || machines != replicas || secrets != 2*replicas {
			return fmt.Sprintf("%d devices, %d keys left, %s healthy, %s hosting, %d Machines, %d Secrets", d, k, healthy, hosting, machines, secrets)
		}
		return ""
	})
}

func scales(t *testing.T) {
	scale(t, 1)
	initial := pods(t)
	scale(t, 3)
	grown := pods(t)
	rests(t, "proxies")
	scale(t, 1)
	final := pods(t)
	if len(initial) != 1 || len(grown) != 3 || len(final) != 1 {
		t.Fatalf("want 1, 3 and 1 pods, got %v, %v and %v", initial, grown, final)
	}
	for name, instance := range initial {
		if grown[name] != instance || final[name] != instance {
			t.Errorf("pod %s changed: %s, then %s, then %s", name, instance, grown[name], final[name])
		}
	}
	breakerStaysClosed(t)
}

// primary returns the machine that has the service's addresses, or an empty string.
func primary(t *testing.T, service string) string {
	t.Helper()
	p, err := tailnetState(t).primary(service)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The agent must withdraw a dead backend within this time of its last response, and advertise a
// live one.
const withdrawWithin = 15 * time.Second

// controlWithin bounds how long the control plane then takes to move the service's addresses in a
// lab: 15 s, and some delay.
const controlWithin = 25 * time.Second

// hosting returns how many machines advertise a service.
func hosting(t *testing.T, service string) int {
	t.Helper()
	for _, s := range tailnetState(t).Services {
		if s.Name == "svc:"+service {
			return len(s.Hosts)
		}
	}
	t.Fatalf("the tailnet has no svc:%s", service)
	return 0
}

func withdrawsBackend(t *testing.T) {
	withdrawn(t)
	conditionOf(t, "tailscaleservices", "web", "Advertised", "False", "NoHealthyBackend", 30*time.Second)
	returns(t)
}

// withdrawsAndReturns reads the tailnet only.
func withdrawsAndReturns(t *testing.T) {
	t.Helper()
	withdrawn(t)
	returns(t)
}

func withdrawn(t *testing.T) {
	t.Helper()
	kubectl(t, "scale", "deployment", "web", "-n", namespace, "--replicas=0")
	// kube-proxy sends to a terminating pod while there is no other.
	eventually(t, time.Minute, "no pod of web", func() string {
		return kubectl(t, "get", "pods", "-n", namespace, "-l", "app=web", "-o=name")
	})
	took := eventually(t, withdrawWithin, "svc:web withdrawn", func() string {
		if n := hosting(t, "web"); n > 0 {
			return fmt.Sprintf("%d machines still advertise the service", n)
		}
		return ""
	})
	moved := eventually(t, controlWithin, "svc:web without a host", func() string {
		if p := primary(t, "web"); p != "" {
			return "machine " + p + " still has the service"
		}
		return ""
	})
	t.Logf("withdrawn %s after the last backend was gone; control followed %s later", took.Round(100*time.Millisecond), moved.Round(100*time.Millisecond))
}

func returns(t *testing.T) {
	t.Helper()
	kubectl(t, "scale", "deployment", "web", "-n", namespace, "--replicas=2")
	kubectl(t, "wait", "deployment", "web", "-n", namespace, "--for=condition=Available", "--timeout=60s")
	took := eventually(t, withdrawWithin, "svc:web advertised again", func() string {
		if hosting(t, "web") == 0 {
			return "no machine advertises the service"
		}
		return ""
	})
	eventually(t, controlWithin, "svc:web with a host", func() string {
		if primary(t, "web") == "" {
			return "no machine has the service"
		}
		return ""
	})
	t.Logf("advertised again %s after a backend answered", took.Round(100*time.Millisecond))
	answered(t, "web", "web", time.Minute)
}

func survives(t *testing.T) {
	again(t)
	kubectl(t, "delete", "pod", "-n", "crossplane-system", "-l", "pkg.crossplane.io/provider", "--wait=false")
	kubectl(t, "delete", "pod", "proxies-ingress-0", "-n", namespace, "--force", "--grace-period=0")
	answered(t, "web", "web", 3*time.Minute)
	eventually(t, time.Minute, "one device, the one of before", func() string {
		d, k, _ := tailnetState(t).ours()
		if d != 1 || k != 0 {
			return fmt.Sprintf("%d devices, %d keys", d, k)
		}
		return ""
	})
}
