// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

// Package e2e tests Tailscale Gateway in the lab: a real cluster, real Crossplane and real
// tailscaled on this machine. Only Tailscale's control plane is simulated. The tests use the
// commands of the lab and the demo.
package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
)

var (
	version = flag.String("version", "v0.1.0-dev", "version of the packages to build and test")
	flavour = flag.String("flavour", "namespaced", "kinds to test: namespaced, or claims")
	outage  = flag.Duration("outage", 0, "how long the API of a tailnet keeps failing after the status reports the failure, in tests of a failing API")
	keep    = flag.Bool("keep", false, "leave the lab up at the end, for inspection or another run")
)

// lab is the path of the lab's binary, built once: with `go run`, each poll would check whether the
// binary is up to date.
var lab string

// TestMain stops the lab after all tests, also after a failure.
func TestMain(m *testing.M) {
	flag.Parse()
	// Tests wait more than they work, so some run in parallel. More would starve the cluster.
	if err := flag.Set("test.parallel", "5"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(func() int {
		// An interrupt ends the test and its processes, but not this process, which then takes the
		// lab down.
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)

		if err := os.Chdir("../.."); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		dir, err := os.MkdirTemp("", "e2e")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir) // The directory has the binary only.
		lab = filepath.Join(dir, "lab")
		if err := stream(context.Background(), "go", "build", "-o", lab, "./cluster/lab"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if !*keep {
			defer func() {
				if err := stream(context.Background(), "go", "run", "./cluster/demo", "down"); err != nil {
					fmt.Fprintln(os.Stderr, err)
				}
			}()
		}
		code := m.Run()
		if code != 0 {
			dump()
		}
		return code
	}())
}

// demo starts the lab with Crossplane and the packages.
func demo(t *testing.T) {
	t.Helper()
	if err := stream(t.Context(), "go", "run", "./cluster/demo", "up", "--version="+*version, "--flavour="+*flavour); err != nil {
		t.Fatalf("cannot bring up the demo: %v", err)
	}
}

// labRun runs the lab's command line, and shows its output.
func labRun(t *testing.T, args ...string) {
	t.Helper()
	if err := stream(t.Context(), lab, args...); err != nil {
		t.Fatalf("lab %s: %v", strings.Join(args, " "), err)
	}
}

func stream(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// dump prints the state of the cluster after a failure.
func dump() {
	for _, args := range [][]string{
		{"get", "tailscaletailnets,tailscaleproxygroups,tailscaleendpoints,tailscaleservices,tailscalegateways,vipservices,machines,tailnets,statefulsets,pods", "-A", "-o", "wide"},
		{"get", "events", "-A", "--sort-by=.lastTimestamp"},
		{"get", "providers,functions,configurations", "-o", "yaml"},
		{"describe", "tailscaletailnets,tailscaleproxygroups,tailscaleendpoints,tailscaleservices,tailscalegateways", "-A"},
		{"logs", "-n", "crossplane-system", "-l", "pkg.crossplane.io/provider", "--tail=60"},
		{"logs", "-n", "crossplane-system", "-l", "app=crossplane", "--tail=60"},
		{"get", "gatewayclasses,gateways,httproutes", "-A", "-o", "yaml"},
		{"logs", "-n", "envoy-gateway-system", "-l", "control-plane=envoy-gateway", "--tail=60"},
		{"logs", "-n", "envoy-gateway-system", "-l", "app.kubernetes.io/name=tailscale-gateway-extension", "--prefix", "--tail=60"},
	} {
		out, err := exec.CommandContext(context.Background(), lab, append([]string{"kubectl"}, args...)...).CombinedOutput()
		fmt.Printf("--- kubectl %v (%v)\n%s\n", args, err, out)
	}
}
