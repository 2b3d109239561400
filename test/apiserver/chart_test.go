// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package apiserver_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

// TestChartNeedsCrossplane installs the chart in a cluster without Crossplane. Helm's own message
// names a kind that has no match, and not what to do.
func TestChartNeedsCrossplane(t *testing.T) {
	s, err := apiserver.Start(t.Context(), apiserver.Options{})
	if err != nil {
		t.Fatalf("cannot start an API server: %v", err)
	}
	defer func() {
		if err := s.Stop(); err != nil {
			t.Errorf("cannot stop the API server: %v", err)
		}
	}()
	kubeconfig, err := s.WriteKubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	root, err := apiserver.Root()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Getenv("TEST_ASSET_HELM"), "install", "tailscale-gateway", filepath.Join(root, "package/charts/tailscale-gateway"),
		"--kubeconfig="+kubeconfig, "--namespace=crossplane-system", "--create-namespace")
	out, err := cmd.CombinedOutput()
	const want = "helm upgrade --install crossplane crossplane --repo https://charts.crossplane.io/stable --namespace crossplane-system"
	if err == nil || !strings.Contains(string(out), want) {
		t.Errorf("want an error with %q, got %v:\n%s", want, err, out)
	}
}
