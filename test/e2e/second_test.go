// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && (clusters || restore)

package e2e

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

const (
	// second is the lab's other cluster. The names of its pods begin with far-, those of the first
	// with web-.
	second    = "two"
	farPrefix = "far"
)

// prepareSecond installs the packages on another cluster, and creates the namespace of the
// quickstart there, with the credential and a web server.
func prepareSecond(t *testing.T, cluster string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "run", "./cluster/demo", "install", "--version="+*version, "--flavour="+*flavour)
	cmd.Env = append(os.Environ(), "TSGW_CLUSTER="+cluster)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("cannot install on cluster %s: %v", cluster, err)
	}
	inSecond(t, readFile(t, "examples/quickstart/namespace.yaml"), "apply", "--server-side", "-f", "-")
	secret := inSecond(t, "", "create", "secret", "generic", "tailscale-oauth", "-n", namespace, "--dry-run=client", "-o=yaml",
		"--from-literal=client_id="+fromLab(t, "TAILNET_CLIENT_ID"), "--from-file=client_secret="+fromLab(t, "TAILNET_CLIENT_SECRET_FILE"))
	inSecond(t, secret, "apply", "--server-side", "-f", "-")
	web := readFile(t, "examples/quickstart/web.yaml")
	const deployment = "kind: Deployment\nmetadata:\n  name: "
	if !strings.Contains(web, deployment+"web\n") {
		t.Fatal("examples/quickstart/web.yaml has no Deployment web")
	}
	inSecond(t, strings.Replace(web, deployment+"web\n", deployment+farPrefix+"\n", 1), "apply", "--server-side", "-f", "-")
}

// inSecond runs kubectl on the second cluster.
func inSecond(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, lab, append([]string{"--cluster=" + second, "kubectl"}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	complaints := &strings.Builder{}
	cmd.Stderr = complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("kubectl %s on cluster %s: %v\n%s", strings.Join(args, " "), second, err, complaints)
	}
	return string(out)
}
