// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestPurePackages checks that the packages that parse objects, answer hooks and plan import no
// informers and nothing else of the API server's machinery, not even indirectly.
func TestPurePackages(t *testing.T) {
	t.Parallel()
	forbidden := []string{
		"k8s.io/client-go/tools/cache",
		"k8s.io/client-go/informers",
		"sigs.k8s.io/controller-runtime/pkg/cache",
		"sigs.k8s.io/controller-runtime/pkg/manager",
		"github.com/tailscale-gateway/tailscale-gateway/extension/watch",
	}
	for _, p := range []string{"./ir", "./parse", "./index", "./xds", "./hooks", "./eds", "./gateways/routes", "./gateways/protect", "./gateways/report"} {
		t.Run(p, func(t *testing.T) {
			t.Parallel()
			out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", p).Output()
			if err != nil {
				t.Fatal(err)
			}
			for _, pkg := range strings.Fields(string(out)) {
				if slices.Contains(forbidden, pkg) {
					t.Errorf("%s depends on %s", p, pkg)
				}
			}
		})
	}
}
