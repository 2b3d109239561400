// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func provisions(t *testing.T) {
	const deleted, example, created = "examples/auto-provisioned.yaml", "examples/auto-cleanup.yaml", "tailscaleendpoints,machines,statefulsets"
	apply(t, readFile(t, deleted))
	apply(t, readFile(t, example))
	answered(t, "auto", "web", 3*time.Minute)
	answered(t, "cleanup", "web", 3*time.Minute)
	kubectl(t, "delete", "-f", deleted, "--wait=false")
	kubectl(t, "label", "tailscaleendpoints", "-n", namespace, "proxies", "hosts-cleanup=true")
	eventually(t, 3*time.Minute, "the created proxies are gone", func() string {
		for _, o := range strings.Fields(kubectl(t, "get", created, "-n", namespace, "-o=name")) {
			if strings.Contains(o, "/cleanup") {
				return o + " is left"
			}
		}
		return ""
	})
	answered(t, "cleanup", "web", time.Minute)
	kubectl(t, "delete", "-f", example, "--timeout=2m")
	kubectl(t, "label", "tailscaleendpoints", "-n", namespace, "proxies", "hosts-cleanup-")
	goneFrom(t, namespace, "auto", "cleanup")
}

// leaksNoSecret searches for the credential and for auth keys in objects other than Secrets, in
// events, and in the log of each pod.
func leaksNoSecret(t *testing.T) { leaksNothingOf(t, tailnetOne) }

func leaksNothingOf(t *testing.T, tailnets ...tailnet) {
	t.Helper()
	secrets := []string{"tskey-auth-", "tskey-client-wrong"}
	for _, n := range tailnets {
		secrets = append(secrets, strings.TrimSpace(readFile(t, n.env(t, "TAILNET_CLIENT_SECRET_FILE"))))
	}
	kinds := strings.Fields(kubectl(t, "api-resources", "--verbs=list", "-o=name"))
	var readable []string
	for _, k := range kinds {
		if k != "secrets" && !strings.HasSuffix(k, ".metrics.k8s.io") && k != "componentstatuses" {
			readable = append(readable, k)
		}
	}
	texts := map[string]string{"objects": kubectl(t, "get", strings.Join(readable, ","), "-A", "-o=yaml", "--ignore-not-found")}
	for line := range strings.Lines(kubectl(t, "get", "pods", "-A", "--no-headers", "-o=custom-columns=NS:.metadata.namespace,NAME:.metadata.name")) {
		if f := strings.Fields(line); len(f) == 2 && (f[0] == namespace || f[0] == "crossplane-system") {
			texts["log of "+f[1]] = kubectl(t, "logs", "-n", f[0], f[1], "--all-containers")
		}
	}
	if len(texts) < 6 {
		t.Fatalf("only %d places to look at", len(texts))
	}
	for source, text := range texts {
		for _, s := range secrets {
			if strings.Contains(text, s) {
				t.Errorf("%s holds %q", source, s[:min(len(s), 16)]+"...")
			}
		}
	}
}

// nothingOfOurs waits until neither the tailnet nor the cluster has an object of the quickstart.
func nothingOfOurs(t *testing.T) {
	t.Helper()
	eventually(t, 2*time.Minute, "nothing left of the quickstart", func() string {
		d, k, s := tailnetState(t).ours()
		out := kubectl(t, "get", "tailscaleendpoints,tailscaleservices,machines,vipservices,serviceattachments,proxysets,statefulsets,poddisruptionbudgets,roles,rolebindings", "-n", namespace, "-o=name", "--ignore-not-found")
		secrets := kubectl(t, "get", "secrets,serviceaccounts", "-n", namespace, "-l", "gateway.tailscale.com/endpoints", "-o=name", "--ignore-not-found")
		if d+k+s != 0 || out+secrets != "" {
			return fmt.Sprintf("%d devices, %d keys, %d services, %s", d, k, s, strings.Join(strings.Fields(out+secrets), " "))
		}
		return ""
	})
}

// again applies the quickstart as `make demo` does, and waits for a response.
func again(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "run", "./cluster/demo", "quickstart")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("cannot apply the quickstart again: %v\n%s", err, out)
	}
}

func deletesExample(t *testing.T) {
	kubectl(t, "delete", "-f", "examples/quickstart/web-tailscale.yaml", "-f", "examples/quickstart/web.yaml", "-f", "examples/quickstart/tailnet.yaml", "--timeout=3m")
	nothingOfOurs(t)
	if out := kubectl(t, "get", "tailnets,tailscaletailnets,clusterproviderconfigs", "-A", "-o=name", "--ignore-not-found"); out != "" {
		eventually(t, time.Minute, "no tailnet left", func() string {
			return kubectl(t, "get", "tailnets,tailscaletailnets,clusterproviderconfigs", "-A", "-o=name", "--ignore-not-found")
		})
	}
}

func deletesNamespace(t *testing.T) {
	kubectl(t, "delete", "namespace", namespace, "--timeout=4m")
	d, k, s := tailnetState(t).ours()
	if d+k+s != 0 {
		t.Errorf("left in the tailnet: %d devices, %d keys, %d services", d, k, s)
	}
	kubectl(t, "delete", "tailscaletailnets", "quickstart", "--timeout=1m")
}

func deletesAllTogether(t *testing.T) {
	orders := [][]string{
		{"secret/tailscale-oauth", "tailscaletailnets/quickstart", "tailscaleendpoints/proxies", "tailscaleservices/web"},
		{"tailscaleservices/web", "tailscaleendpoints/proxies", "tailscaletailnets/quickstart", "secret/tailscale-oauth"},
	}
	for _, order := range orders {
		again(t)
		manifest := &strings.Builder{}
		for _, o := range order {
			kind, name, _ := strings.Cut(o, "/")
			args := []string{"get", kind, name, "-n", namespace, "-o=yaml"}
			fmt.Fprintf(manifest, "---\n%s", kubectl(t, args...))
		}
		f := filepath.Join(t.TempDir(), "all.yaml")
		if err := os.WriteFile(f, []byte(manifest.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		kubectl(t, "delete", "-f", f, "--timeout=3m")
		nothingOfOurs(t)
	}
}
