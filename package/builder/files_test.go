// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tailscale-gateway/tailscale-gateway/internal/version"
)

// downloads matches files of a release that pages name.
var downloads = regexp.MustCompile(`/releases/download/(v[^/\s` + "`" + `)]+)/([\w.-]+)`)

// TestFiles checks that a release has the files that pages and notes have users download, in its own version.
func TestFiles(t *testing.T) {
	c := &releaseCmd{Version: "v9.8.7", Package: "..", Out: t.TempDir()}
	if err := c.writeFiles(); err != nil {
		t.Fatal(err)
	}
	for name := range files {
		b, err := os.ReadFile(filepath.Join(c.Out, "files", name))
		if err != nil {
			t.Fatal(err)
		}
		if tree := strings.TrimPrefix(version.Version, "v"); strings.Contains(string(b), tree) {
			t.Errorf("%s names the version %s of the tree", name, tree)
		}
	}
	install, err := os.ReadFile(filepath.Join(c.Out, "files", "install.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(install), "/provider-tailscale:v9.8.7") {
		t.Error("install.yaml does not install the version of the release")
	}

	// Other files of a release have tests that make them.
	other := []string{"images.txt", "checksums.txt", "checksums.txt.sigstore.json"}
	named := map[string]bool{}
	for _, pattern := range []string{"../../README.md", "../../docs/*.md", "../../docs/guides/*.md", "../charts/*/README.md", "../charts/*/templates/NOTES.txt", "../mirror.sh"} {
		pages, err := filepath.Glob(pattern)
		if err != nil || len(pages) == 0 {
			t.Fatalf("no page is %s: %v", pattern, err)
		}
		for _, page := range pages {
			b, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range downloads.FindAllStringSubmatch(string(b), -1) {
				named[m[2]] = true
				if _, ok := files[m[2]]; !ok && !slices.Contains(other, m[2]) && !strings.HasPrefix(m[2], pluginBinary) {
					t.Errorf("%s: no release has the file %s", page, m[2])
				}
			}
		}
	}
	for name := range files {
		if !named[name] {
			t.Errorf("no page names the file %s", name)
		}
	}
}
