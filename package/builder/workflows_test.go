// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// pinned matches an action at a commit, with its version for people and Dependabot.
var pinned = regexp.MustCompile(`^\s*-? ?uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)

// TestActionsPinned checks that workflows run actions at commits: tags can be moved.
func TestActionsPinned(t *testing.T) {
	files, err := filepath.Glob("../../.github/workflows/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no workflows", err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(b), "\n") {
			if strings.Contains(line, "uses:") && !pinned.MatchString(line) {
				t.Errorf("%s: %s: name a commit and a version", filepath.Base(f), strings.TrimSpace(line))
			}
		}
	}
}

// TestUploads checks that a release uploads all files whose checksums it lists.
func TestUploads(t *testing.T) {
	b, err := os.ReadFile("../../.github/workflows/release.yaml")
	if err != nil {
		t.Fatal(err)
	}
	uploaded := strings.Fields(string(b))
	for _, pattern := range append([]string{"checksums.txt", "checksums.txt.sigstore.json"}, assets...) {
		if !slices.Contains(uploaded, "_out/release/"+pattern) {
			t.Errorf("the workflow uploads no %s", pattern)
		}
	}
}

// TestDependabot checks that each lockfile of the repository is updated.
func TestDependabot(t *testing.T) {
	b, err := os.ReadFile("../../.github/dependabot.yml")
	if err != nil {
		t.Fatal(err)
	}
	config := struct {
		Updates []struct {
			Ecosystem   string   `json:"package-ecosystem"`
			Directory   string   `json:"directory"`
			Directories []string `json:"directories"`
		} `json:"updates"`
	}{}
	if err := yaml.Unmarshal(b, &config); err != nil {
		t.Fatal(err)
	}
	patterns := map[string][]string{}
	for _, u := range config.Updates {
		patterns[u.Ecosystem] = append(append(patterns[u.Ecosystem], u.Directories...), u.Directory)
	}
	ecosystems := map[string]string{"go.mod": "gomod", "requirements.txt": "pip", "devcontainer.json": "devcontainers"}
	found := map[string]int{}
	err = fs.WalkDir(os.DirFS("../.."), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path == "cluster/proxies" {
			// Each module there is one version of tailscaled, which must stay as it is.
			return fs.SkipDir
		}
		if d.IsDir() && (d.Name() == "_out" || d.Name() == "testdata" || d.Name() == ".git") {
			return fs.SkipDir
		}
		ecosystem, ok := ecosystems[d.Name()]
		if !ok {
			return nil
		}
		found[ecosystem]++
		dir := "/" + strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), ".")
		if ecosystem == "devcontainers" {
			// Dependabot looks for the folder by itself.
			dir = "/"
		}
		if !slices.ContainsFunc(patterns[ecosystem], func(p string) bool { ok, err := filepath.Match(p, dir); return ok && err == nil }) {
			t.Errorf("Dependabot does not update %s", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, ecosystem := range ecosystems {
		if found[ecosystem] == 0 {
			t.Errorf("found no lockfile of %s", ecosystem)
		}
	}
	if found["gomod"] < 3 {
		t.Errorf("found %d modules", found["gomod"])
	}
}
