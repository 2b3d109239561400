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
	"time"

	"github.com/google/go-cmp/cmp"

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
	kubectl(t, "delete", "namespace", namespace, "--timeout=4m")
	t.Run("InstallCommand", func(t *testing.T) {
		installsByPlugin(t, w, filepath.Join(released, "charts", "tailscale-gateway-"+strings.TrimPrefix(*version, "v")+".tgz"))
	})
}

// installsByPlugin uninstalls the product as docs/uninstall.md describes, and installs it again with the
// plugin: first as a dry run, then for good, and once more, which changes nothing.
func installsByPlugin(t *testing.T, w walk, chart string) {
	uninstallCommands(t, "## 2.")
	uninstallCommands(t, "## 3.")
	packages := func() string {
		return kubectl(t, "get", "configurations.pkg,providers.pkg,functions.pkg", "-o=name")
	}
	eventually(t, patience, "no package is left", packages)
	install := "kubectl tailscale-gateway install --yes --tailnet=example --chart=" + chart +
		" --api-url=" + fromLab(t, "TAILNET_API") + " --client-id=" + fromLab(t, "TAILNET_CLIENT_ID") + " --client-secret-file=" + fromLab(t, "TAILNET_CLIENT_SECRET_FILE") + " --merge-policy"
	values := " --values=" + labValues(t)
	pageCommand(t, w.dir, install+values+" --dry-run", w.path...)
	if got := packages(); got != "" {
		t.Fatalf("a dry run installs %s", got)
	}
	began := time.Now()
	pageCommand(t, w.dir, install+values, w.path...)
	t.Logf("installed after %s", time.Since(began).Round(100*time.Millisecond))
	if got := kubectl(t, "get", "tailscaletailnet", "example", `-o=jsonpath={.status.conditions[?(@.type=="Authenticated")].status}`); got != "True" {
		t.Errorf("the condition Authenticated of the first tailnet is %q, want True", got)
	}
	release := func() string {
		return pageCommand(t, w.dir, "helm history tailscale-gateway --namespace=crossplane-system --output=json", w.path...)
	}
	history := release()
	pageCommand(t, w.dir, install, w.path...)
	if diff := cmp.Diff(history, release()); diff != "" {
		t.Errorf("the release after a second run: -before, +after:\n%s", diff)
	}
}
