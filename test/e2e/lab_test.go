// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

const namespace = "quickstart"

// fromLab returns an address or a file of the lab.
func fromLab(t *testing.T, key string) string {
	t.Helper()
	return tailnetOne.env(t, key)
}

// labBin is the path of a program that the lab built.
var labBins sync.Map

func labBin(t *testing.T, name string) string {
	t.Helper()
	if p, ok := labBins.Load(name); ok {
		return p.(string)
	}
	out, err := exec.Command(lab, "bin", name).Output()
	if err != nil {
		t.Fatalf("cannot find %s: %v", name, err)
	}
	p := strings.TrimSpace(string(out))
	labBins.Store(name, p)
	return p
}

// tryRun runs a program of the lab against its cluster, and returns stdout and stderr.
func tryRun(t *testing.T, stdin string, bin string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, labBin(t, bin), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+fromLab(t, "KUBECONFIG"))
	cmd.Stdin = strings.NewReader(stdin)
	out := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, out
	err := cmd.Run()
	return out.String(), err
}

func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := tryRun(t, "", "kubectl", args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func apply(t *testing.T, manifest string) {
	t.Helper()
	out, err := tryRun(t, manifest, "kubectl", "apply", "--server-side", "--force-conflicts", "-f", "-")
	if err != nil {
		t.Fatalf("cannot apply: %v\n%s\n%s", err, out, manifest)
	}
}

// patience is the timeout of steps that do not measure a time: a busy machine may take long, and a
// wait ends as soon as its condition holds.
const patience = 4 * time.Minute

// eventually polls until check returns an empty string, and fails with the last result otherwise.
func eventually(t *testing.T, timeout time.Duration, description string, check func() string) time.Duration {
	t.Helper()
	began := time.Now()
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		missing := check()
		if missing == "" {
			return time.Since(began)
		}
		select {
		case <-deadline.C:
			t.Fatalf("%s: not within %s: %s", description, timeout, missing)
		case <-t.Context().Done():
			t.Fatalf("%s: cancelled: %s", description, missing)
		case <-tick.C:
		}
	}
}

// curl requests a URL as a client of the tailnet.
func curl(t *testing.T, url string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, lab, "tailnet-curl", url).Output()
	return strings.TrimSpace(string(out)), err
}

func jsonpath(t *testing.T, kind, name, path string) string {
	t.Helper()
	return jsonpathIn(t, namespace, kind, name, path)
}

func jsonpathIn(t *testing.T, ns, kind, name, path string) string {
	t.Helper()
	out, err := tryRun(t, "", "kubectl", "get", kind, name, "-n", ns, "--ignore-not-found", "-o=jsonpath="+path)
	if err != nil {
		return ""
	}
	return out
}

// read decodes an object. It leaves obj unchanged if the object does not exist.
func read(t *testing.T, ns, kind, name string, obj any) {
	t.Helper()
	out := kubectl(t, "get", kind, name, "-n", ns, "--ignore-not-found", "-o=json")
	if strings.TrimSpace(out) == "" {
		return
	}
	if err := json.Unmarshal([]byte(out), obj); err != nil {
		t.Fatalf("cannot parse %s %s: %v\n%s", kind, name, err, out)
	}
}
