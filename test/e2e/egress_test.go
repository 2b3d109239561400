// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// ghost is an address of the tailnet's range that no device has. The decoy listens there in the
// cluster's network.
const ghost = "100.64.250.1"

// prober is a pod that connects to the address in a request and returns the responses. Its
// namespace is a parameter, and so is its name, which is its label too.
const prober = `apiVersion: v1
kind: Pod
metadata:
  name: %[2]s
  namespace: %[1]s
  labels: {app: %[2]s}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 1
  securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: prober
    image: registry.k8s.io/e2e-test-images/agnhost:2.53
    args: [netexec, --http-port=8080, --udp-port=-1]
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
`

// decoy is a pod in the node's network.
const decoy = `apiVersion: v1
kind: Pod
metadata:
  name: decoy
  namespace: kube-system
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 1
  containers:
  - name: decoy
    image: registry.k8s.io/e2e-test-images/agnhost:2.53
    args: [netexec, --http-port=18080, --udp-port=18081]
`

// egressManifest has one target of each kind.
const egressManifest = `apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleEndpoints
metadata:
  name: %[7]s
  namespace: %[1]s
spec:
  tailnet: quickstart
  proxy:
    replicas: %[2]d
    connectionType: egress
    networking: %[3]s
    env:
    - {name: TS_DEBUG_FIREWALL_MODE, value: nftables}
  endpoints:
  - {name: device, tailscaleIP: %[4]q, port: 8080, protocol: HTTP}
  - {name: name, tailscaleFQDN: %[5]q, port: 8080, protocol: HTTP}
  - {name: service, tailscaleFQDN: %[6]q, port: 80, protocol: HTTP}
  - {name: behind, tailscaleIP: 10.99.0.5, port: 8080, protocol: HTTP}
  - {name: ghost, tailscaleIP: ` + ghost + `, port: 18080, protocol: HTTP}
`

// dial has the prober connect to host:port and request a hostname.
func dial(t *testing.T, ns, protocol, host string, port int) (answers []string, err error) {
	t.Helper()
	return dialFrom(t, ns, "prober", protocol, host, port)
}

// dialFrom is like dial, from another pod that runs the prober's image.
func dialFrom(t *testing.T, ns, pod, protocol, host string, port int) (answers []string, err error) {
	t.Helper()
	q := url.Values{"host": {host}, "port": {strconv.Itoa(port)}, "protocol": {protocol}, "request": {"hostname"}, "tries": {"1"}}
	out, err := tryRun(t, "", "kubectl", "get", "--raw", "/api/v1/namespaces/"+ns+"/pods/"+pod+":8080/proxy/dial?"+q.Encode())
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	got := struct {
		Responses []string `json:"responses"`
		Errors    []string `json:"errors"`
	}{}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	if len(got.Responses) == 0 {
		return nil, fmt.Errorf("no answer: %s", strings.Join(got.Errors, "; "))
	}
	return got.Responses, nil
}

// reaches waits until host:port answers, and returns the hostname that it answers with. A test that needs an answer uses it instead of
// one dial, because the prober waits for 5 s only, and a loaded machine may need longer.
func reaches(t *testing.T, ns, protocol, host string, port int, timeout time.Duration) (hostname string) {
	t.Helper()
	eventually(t, timeout, fmt.Sprintf("answer of %s %s:%d", protocol, host, port), func() string {
		got, err := dial(t, ns, protocol, host, port)
		if err != nil {
			return err.Error()
		}
		hostname = got[0]
		return ""
	})
	return hostname
}

// labOutput returns the output of a command of the lab.
func labOutput(t *testing.T, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, lab, args...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// labCommand runs a command of the lab that must succeed.
func labCommand(t *testing.T, args ...string) string {
	t.Helper()
	out, err := labOutput(t, args...)
	if err != nil {
		t.Fatalf("lab %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// unique is the suffix of the machines' hostnames.
var unique = regexp.MustCompile(`-[0-9a-f]{8}$`)

// addressOf returns the address of a device, once the tailnet has it.
func addressOf(t *testing.T, hostname string) string {
	t.Helper()
	out := labCommand(t, "tailscale", "status", "--json")
	st := struct {
		Peer map[string]struct {
			HostName     string
			TailscaleIPs []string
		}
	}{}
	if err := json.Unmarshal([]byte(out), &st); err != nil {
		t.Fatal(err)
	}
	for _, p := range st.Peer {
		if unique.ReplaceAllString(p.HostName, "") == hostname {
			return p.TailscaleIPs[0]
		}
	}
	t.Fatalf("no device %q", hostname)
	return ""
}

// reachesTargets checks that pods without Tailscale reach devices, services and hosts behind a
// router, and no address outside the tailnet.
func reachesTargets(t *testing.T) {
	labCommand(t, "tailnet-client", "db")
	labCommand(t, "tailnet-client", "router", "--route=10.99.0.0/24")
	withDecoy(t)
	apply(t, fmt.Sprintf(prober, namespace, "prober"))
	applyEgress(t, "out", 2)

	kubectl(t, "wait", "pod/prober", "-n", namespace, "--for=condition=Ready", "--timeout=60s")
	// Clients of the cluster's network reach the decoy: otherwise the test proves nothing.
	reaches(t, namespace, "http", ghost, 18080, 30*time.Second)

	for _, target := range []string{"device", "name", "behind"} {
		reaches(t, namespace, "http", "out-"+target, 8080, 2*time.Minute)
	}
	reaches(t, namespace, "http", "out-service", 80, time.Minute)
	if got, err := dial(t, namespace, "http", "out-ghost", 18080); err == nil {
		t.Errorf("a target that no device has was reached outside the tailnet: %v answered", got)
	}

	eventually(t, time.Minute, "status of egress", func() string {
		out := jsonpath(t, "tailscaleendpoints", "out", `{range .status.egressTargets[*]}{.name}={.readyProxies} {.message}{"\n"}{end}{.status.conditions[?(@.type=="EgressReady")].status}`)
		for _, want := range []string{"device/8080=2", "name/8080=2", "service/80=2", "behind/8080=2", "ghost/18080=0"} {
			if !strings.Contains(out, want) {
				return "no " + want + " in\n" + out
			}
		}
		if !strings.HasSuffix(out, "False") {
			return "EgressReady is not False while one target has no host:\n" + out
		}
		return ""
	})
}

func applyEgress(t *testing.T, name string, replicas int) {
	t.Helper()
	domain := strings.TrimSuffix(strings.TrimPrefix(vipURL(t, "web"), "http://web."), "/")
	apply(t, fmt.Sprintf(egressManifest, namespace, replicas, "Userspace", addressOf(t, "db"), "db."+domain, "web."+domain, name))
}

// withDecoy gives the node an address of the tailnet's range at which a decoy listens, until the
// test ends.
func withDecoy(t *testing.T) {
	t.Helper()
	ip := func(verb string) error {
		return exec.Command("ip", "-n", "tsgw-one", "addr", verb, ghost+"/32", "dev", "lo").Run()
	}
	if err := ip("add"); err != nil {
		t.Fatalf("cannot give the node the decoy's address: %v", err)
	}
	t.Cleanup(func() {
		if err := ip("del"); err != nil {
			t.Errorf("cannot take the decoy's address away: %v", err)
		}
	})
	apply(t, decoy)
	kubectl(t, "wait", "pod/decoy", "-n", "kube-system", "--for=condition=Ready", "--timeout=60s")
}

// rollsEgress restarts the egress pods one by one under load, and loses no request.
func rollsEgress(t *testing.T) {
	type result struct {
		requests, lost int
		first          string
	}
	stop := make(chan struct{})
	stopped := func() bool {
		select {
		case <-stop:
			return true
		default:
			return false
		}
	}
	done := make(chan result, 1)
	go func() {
		r := result{}
		for !stopped() {
			r.requests++
			if _, err := dial(t, namespace, "http", "out-device", 8080); err != nil && !stopped() {
				r.lost++
				if r.first == "" {
					// The state at that moment shows whether the client was sent to a pod that is gone.
					state, _ := tryRun(t, "", "kubectl", "get", "pods,endpointslices", "-n", namespace, "-o", "wide")
					r.first = fmt.Sprintf("%s: %s\n%s", time.Now().Format(time.TimeOnly), err, state)
				}
			}
		}
		done <- r
	}()
	kubectl(t, "rollout", "restart", "statefulset/out-egress", "-n", namespace)
	kubectl(t, "rollout", "status", "statefulset/out-egress", "-n", namespace, "--timeout=4m")
	close(stop)
	r := <-done
	t.Logf("%d requests while both egress pods were restarted", r.requests)
	if r.lost > 0 {
		t.Errorf("%d of %d requests were lost while pods were restarted; the first: %s", r.lost, r.requests, r.first)
	}
}

// addsDirection changes egress proxies into proxies for both directions and back. It uses other
// proxies than rollsEgress: Crossplane's circuit breaker would count the changes of both steps for
// one composite within two minutes.
func addsDirection(t *testing.T) {
	leavesNothing(t, "out")
	applyEgress(t, "ways", 1)
	proxies := func(want string) {
		eventually(t, 3*time.Minute, "proxies of ways", func() string {
			if got := jsonpath(t, "tailscaleendpoints", "ways", "{.status.healthyEndpoints}/{.status.totalEndpoints}"); got != want {
				return got
			}
			return ""
		})
	}
	proxies("1/1")
	rests(t, "ways")
	previous := podUIDs(t, "ways-egress")
	set := func(connectionType string) {
		kubectl(t, "patch", "tailscaleendpoints", "ways", "-n", namespace, "--type=merge", `--patch={"spec":{"proxy":{"connectionType":"`+connectionType+`"}}}`)
	}
	set("bidirectional")
	proxies("2/2")
	rests(t, "ways")
	set("egress")
	eventually(t, 3*time.Minute, "ingress gone", func() string {
		remaining := kubectl(t, "get", "machines,statefulsets,secrets,services,serviceaccounts,roles", "-n", namespace, "-o=name")
		if strings.Contains(remaining, "ways-ingress") {
			return remaining
		}
		return ""
	})
	if current := podUIDs(t, "ways-egress"); previous != current {
		t.Errorf("egress pods were restarted by a change of the other direction: %s, then %s", previous, current)
	}
	leavesNothing(t, "ways")
	breakerStaysClosed(t)
}

// rests waits until proxies have not changed for a while. Crossplane's circuit breaker allows a
// composite some fifty changes in a burst, and takes a minute or two to allow as many again.
func rests(t *testing.T, name string) {
	t.Helper()
	last, lastChange := "", time.Now()
	eventually(t, 3*time.Minute, name+" at rest", func() string {
		if v := jsonpath(t, "tailscaleendpoints", name, "{.metadata.resourceVersion}"); v != last {
			last, lastChange = v, time.Now()
		}
		if d := time.Since(lastChange); d < 30*time.Second {
			return "changed " + d.Round(time.Second).String() + " ago"
		}
		return ""
	})
}

// leavesNothing deletes proxies, and waits until the cluster and the tailnet have nothing left of
// them.
func leavesNothing(t *testing.T, name string) {
	t.Helper()
	kubectl(t, "delete", "tailscaleendpoints", name, "-n", namespace, "--timeout=3m")
	eventually(t, 3*time.Minute, "nothing left of "+name, func() string {
		if remaining := kubectl(t, "get", "machinesets,machines,statefulsets,secrets,services,configmaps", "-n", namespace, "-o=name"); strings.Contains(remaining, "/"+name+"-") {
			return remaining
		}
		if s := tailnetState(t); s.hosts("quickstart-"+name+"-") > 0 {
			return "devices of the proxies are left in the tailnet"
		}
		return ""
	})
}

func podUIDs(t *testing.T, set string) string {
	t.Helper()
	var out []string
	for i := range 2 {
		out = append(out, jsonpath(t, "pod", fmt.Sprintf("%s-%d", set, i), "{.metadata.uid}"))
	}
	return strings.Join(out, " ")
}

// hosts counts the devices with a prefix of the hostname.
func (s state) hosts(prefix string) int {
	n := 0
	for _, d := range s.Devices {
		if strings.HasPrefix(d.Hostname, prefix) {
			n++
		}
	}
	return n
}
