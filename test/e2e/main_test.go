// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

// Package e2e tests Tailscale Gateway in the lab: a real cluster, real Crossplane
// and real tailscaled on this machine; only Tailscale's own service is simulated.
// It drives the lab and the demo by their commands, as a person would.
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
	outage  = flag.Duration("outage", 0, "how long the API of a tailnet fails, where it does, once that is told")
	keep    = flag.Bool("keep", false, "leave the lab up at the end, to look at it or to run again")
)

// lab is the lab's command line, built once: most of what `go run` does is to ask
// whether it must be built, and tests poll with it.
var lab string

// TestMain takes down after all tests what they brought up, passing or failing.
func TestMain(m *testing.M) {
	flag.Parse()
	// Tests wait more than they work: some may run at once. More would starve the
	// cluster that they wait for.
	if err := flag.Set("test.parallel", "5"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(func() int {
		// An interrupt ends what a test has started, and so the test, but not this
		// process, which is to take the lab down.
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
		defer os.RemoveAll(dir) // Nothing but the program.
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

// demo brings up the lab with Crossplane and our packages.
func demo(t *testing.T) {
	t.Helper()
	if err := stream(t.Context(), "go", "run", "./cluster/demo", "up", "--version="+*version, "--flavour="+*flavour); err != nil {
		t.Fatalf("cannot bring up the demo: %v", err)
	}
}

// labRun runs the lab's command line, and shows what it prints.
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

// dump prints what one looks at first when a test failed.
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
