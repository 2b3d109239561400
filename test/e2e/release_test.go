// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && release

package e2e

import (
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
)

var arch = flag.String("arch", runtime.GOARCH, "architectures to release for, separated by commas; that of this machine must be one of them")

// TestRelease releases into the registry of a fresh lab, and installs from there what a stranger
// would: docs/get-started.md in an empty folder, with nothing of this tree but what was released.
func TestRelease(t *testing.T) {
	labRun(t, "up", "--install")
	registry := fromLab(t, "REGISTRY") + "/tailscale-gateway"
	out := t.TempDir()
	if err := stream(t.Context(), "make", "release", "VERSION="+*version, "REGISTRY="+registry, "RELEASE_ARCH="+*arch, "OUT="+out); err != nil {
		t.Fatalf("cannot release: %v", err)
	}
	chart, err := labOutput(t, "chart", "crossplane")
	if err != nil {
		t.Fatalf("cannot find Crossplane's chart: %v", err)
	}
	if out, err := tryRun(t, "", "helm", "upgrade", "--install", "crossplane", strings.TrimSpace(chart), "--namespace=crossplane-system", "--create-namespace", "--wait"); err != nil {
		t.Fatalf("cannot install Crossplane: %v\n%s", err, out)
	}

	released, plugin := filepath.Join(out, "release"), t.TempDir()
	archive := filepath.Join(released, "plugin", "kubectl-tailscale_gateway-linux-"+runtime.GOARCH+".tar.gz")
	pageCommand(t, plugin, "tar -xzf "+archive)
	// The pages' examples are at the tag; here they are where the tag would be.
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	w := walk{
		dir:  t.TempDir(),
		path: append([]string{tailnetCurl(t), plugin}, labPath(t)...),
		replacements: append(inLab(t),
			"oci://"+products.Charts+"/tailscale-gateway --version 0.1.0", "oci://"+registry+"/charts/tailscale-gateway --version "+strings.TrimPrefix(*version, "v")+" --plain-http --values="+labValues(t),
			products.Raw+"/v0.1.0/", root+"/",
		),
	}
	if got := w.follow(t); !strings.HasPrefix(got, "web-") {
		t.Errorf("the answer is %q, want the name of a pod", got)
	}
	pageCommand(t, w.dir, "kubectl tailscale-gateway check && kubectl tailscale-gateway status", w.path...)
}
