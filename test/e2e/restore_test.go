// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && restore

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// outward are egress proxies with two targets in the tailnet.
const outward = `apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleEndpoints
metadata:
  name: outward
  namespace: quickstart
spec:
  tailnet: quickstart
  proxy:
    replicas: 2
    connectionType: egress
  ports:
  - port: 80
  endpoints:
  - name: one
    tailscaleIP: 100.64.250.1
  - name: two
    tailscaleIP: 100.64.250.2
`

// TestRestore loses a real cluster and restores it into another one of the same tailnet, with the
// commands of docs/backup.md.
func TestRestore(t *testing.T) {
	labRun(t, "up", "--install", "--clusters=2")
	demo(t)
	apply(t, outward)
	first := func(args ...string) string { return kubectl(t, args...) }
	other := func(args ...string) string { return inSecond(t, "", args...) }
	eventually(t, patience, "Machines", func() string { return machinesReady(first, 3) })
	answered(t, "web", "web", patience)
	u := vipURL(t, "web")
	want := identityOf(t, first)
	t.Logf("before: %+v", want)

	dir := t.TempDir()
	for _, command := range backupCommands(t) {
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", command)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "KUBECONFIG="+fromLab(t, "KUBECONFIG"), "PATH="+filepath.Dir(labBin(t, "kubectl"))+":"+os.Getenv("PATH"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("cannot back up: %v\n%s", err, out)
		}
	}

	// The proxies of the first cluster run while the second starts to restore.
	stopControllers(t)
	prepareSecond(t, second)
	for _, file := range []string{"state.json", "objects.json"} {
		inSecond(t, readFile(t, filepath.Join(dir, file)), "create", "-f", "-")
	}
	eventually(t, patience, "Machines that wait for the first cluster", func() string {
		reasons := other("get", "machines.tailnet.gateway.tailscale.com", "-n", namespace, `-o=jsonpath={.items[*].status.conditions[?(@.type=="Ready")].reason}`)
		if got := strings.Fields(reasons); len(got) != 3 || slices.ContainsFunc(got, func(r string) bool { return r != string(meta.ReasonDeviceInUse) }) {
			return "reasons: " + reasons
		}
		return ""
	})

	stopped := time.Now()
	kubectl(t, "scale", "statefulset", "-n", namespace, "--selector="+meta.LabelMachineSet, "--replicas=0")
	eventually(t, 2*patience, "Machines of the second cluster", func() string { return machinesReady(other, 3) })
	answeredAt(t, u, farPrefix, patience)
	t.Logf("the second cluster answers %s after the proxies of the first were stopped", time.Since(stopped).Round(time.Second))
	if diff := cmp.Diff(want, identityOf(t, other)); diff != "" {
		t.Errorf("want the same identity: -lost, +restored:\n%s", diff)
	}
}

// backupCommands returns the commands of docs/backup.md that use kubectl.
func backupCommands(t *testing.T) []string {
	t.Helper()
	_, section, ok := strings.Cut(readFile(t, "docs/backup.md"), "\n## Back up with kubectl\n")
	if !ok {
		t.Fatal("docs/backup.md has no section about kubectl")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var out []string
	for i, part := range strings.Split(section, "```") {
		if command, ok := strings.CutPrefix(part, "sh\n"); ok && i%2 == 1 {
			out = append(out, command)
		}
	}
	if len(out) != 2 {
		t.Fatalf("docs/backup.md has %d commands, want two", len(out))
	}
	if _, err := exec.LookPath("jq"); err != nil {
		t.Fatalf("install jq, which the commands of docs/backup.md need: %v", err)
	}
	return out
}

// machinesReady describes what is missing until n Machines are ready.
func machinesReady(kubectl func(...string) string, n int) string {
	out := kubectl("get", "machines.tailnet.gateway.tailscale.com", "-n", namespace, `-o=jsonpath={range .items[*]}{.status.conditions[?(@.type=="Ready")]}{"\n"}{end}`)
	if got := strings.Count(out, `"status":"True"`); got != n {
		return fmt.Sprintf("%d Machines are ready, want %d: %s", got, n, out)
	}
	return ""
}

// A savedIdentity is what a restore must bring back.
type savedIdentity struct {
	ClusterID string

	// Machines have their node ID, name and addresses.
	Machines map[string][]string

	// Devices are the names of all devices that are proxies, with their node IDs.
	Devices map[string]string

	// Addresses are those of the service.
	Addresses []string

	// Ports are the config of the egress proxies.
	Ports string
}

func identityOf(t *testing.T, kubectl func(...string) string) savedIdentity {
	t.Helper()
	out := savedIdentity{
		ClusterID: kubectl("get", "tailscaletailnets", "quickstart", "-o=jsonpath={.status.clusterID}"),
		Machines:  map[string][]string{},
		Devices:   map[string]string{},
		Ports:     kubectl("get", "configmap", "outward-egress", "-n", namespace, `-o=jsonpath={.data}`),
	}
	l := struct {
		Items []struct {
			Metadata struct{ Name string }
			Status   struct {
				AtProvider struct {
					NodeID, Name string
					Addresses    []string
				}
			}
		}
	}{}
	if err := json.Unmarshal([]byte(kubectl("get", "machines.tailnet.gateway.tailscale.com", "-n", namespace, "-o=json")), &l); err != nil {
		t.Fatal(err)
	}
	for _, m := range l.Items {
		p := m.Status.AtProvider
		out.Machines[m.Metadata.Name] = append([]string{p.NodeID, p.Name}, p.Addresses...)
	}
	ds, err := tailnetClient(t).Devices().List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range ds {
		if slices.Contains(d.Tags, "tag:k8s") {
			out.Devices[d.Name] = d.NodeID
		}
	}
	s, err := tailnetClient(t).VIPServices().Get(t.Context(), "svc:web")
	if err != nil {
		t.Fatal(err)
	}
	out.Addresses = s.Addrs
	return out
}
