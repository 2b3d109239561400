// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
	"github.com/tailscale-gateway/tailscale-gateway/internal/version"
)

// helm returns the path of helm, which make test-release builds.
func helm(t *testing.T) string {
	t.Helper()
	h := os.Getenv("TEST_ASSET_HELM")
	if h == "" {
		t.Fatal("TEST_ASSET_HELM is not set: run make test-release")
	}
	return h
}

// TestReleaseCharts releases the real charts, twice, and has helm render what it pulls from the
// registry.
func TestReleaseCharts(t *testing.T) {
	h := helm(t)
	addr := newRegistry(t, true)
	for range 2 {
		c := newRelease(t, addr)
		c.Charts, c.Helm = "../../package/charts", h
		c.products = append([]products.Product{{Name: products.Extension, Kind: products.KindImage, Main: "./testdata/hello"}}, c.products...)
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ref, err := tag(addr, products.Extension, hello)
	if err != nil {
		t.Fatal(err)
	}
	extension, err := remote.Head(ref)
	if err != nil {
		t.Fatal(err)
	}
	pinned := "/extension@" + extension.Digest.String()
	for _, tc := range []struct {
		chart  string
		values []string
		want   []string
	}{
		{chart: "tailscale-gateway-extension", want: []string{pinned}},
		{
			chart: "tailscale-gateway", values: []string{"--set=tailscale-gateway-extension.enabled=true"},
			want: []string{pinned, "/provider-tailscale:v1.2.3", "/function-tailscale:v1.2.3", "/configuration-tailscale-gateway:v1.2.3"},
		},
	} {
		args := append([]string{"template", "released", "oci://" + addr + "/charts/" + tc.chart, "--version=1.2.3", "--plain-http", "--kube-version=1.35.4"}, tc.values...)
		out, err := exec.CommandContext(t.Context(), h, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("cannot render the released chart: %v\n%s", err, out)
		}
		for _, want := range tc.want {
			name := want[:strings.IndexAny(want, ":@")]
			released, all := strings.Count(string(out), want), strings.Count(string(out), name+":")+strings.Count(string(out), name+"@")
			if released == 0 || released != all {
				t.Errorf("the released chart %s names %s %d times, and another version %d times", tc.chart, want, released, all-released)
			}
		}
	}
}

// TestChartsReproducible packages the charts twice, to the same bytes. No file is in an archive
// twice, and no chart has the version of the tree.
func TestChartsReproducible(t *testing.T) {
	var sums []string
	for range 2 {
		c := &chartCmd{Out: t.TempDir(), Charts: "../../package/charts", Version: hello, Helm: helm(t)}
		files, err := c.pack(t.Context(), time.Unix(0, 0))
		if err != nil {
			t.Fatal(err)
		}
		sum := &strings.Builder{}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(sum, checksum(b), filepath.Base(f))
			list, err := exec.CommandContext(t.Context(), "tar", "--list", "--gzip", "--file="+f).Output()
			if err != nil {
				t.Fatal(err)
			}
			for line, n := range lines(strings.TrimSpace(string(list))) {
				if n > 1 {
					t.Errorf("%s has %s %d times", filepath.Base(f), line, n)
				}
			}
			metadata, err := exec.CommandContext(t.Context(), "tar", "--extract", "--to-stdout", "--gzip", "--wildcards", "--file="+f, "*/Chart.yaml").Output()
			if err != nil {
				t.Fatal(err)
			}
			if tree := strings.TrimPrefix(version.Version, "v"); strings.Contains(string(metadata), tree) {
				t.Errorf("%s names version %s", filepath.Base(f), tree)
			}
		}
		sums = append(sums, sum.String())
	}
	if sums[0] != sums[1] {
		t.Errorf("two archives of one chart differ:\n%s%s", sums[0], sums[1])
	}
}
