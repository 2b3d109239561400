// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package products

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	pkgmetav1 "github.com/crossplane/crossplane/apis/v2/pkg/meta/v1"
)

// root is the root of the repository.
const root = "../.."

// mentions matches our images, and Crossplane's objects of our packages.
var mentions = regexp.MustCompile(`(?:` + regexp.QuoteMeta(Organization) + `/|` + regexp.QuoteMeta(Owner) + `-(?:provider|function)-|\b(?:provider|function|configuration)-tailscale)[a-z-]*`)

// files returns the files that name products but cannot import this package.
func files(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, dir := range []string{"package", "examples", "docs", "Makefile", "README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			// A symbolic link has the content of another path.
			if !d.Type().IsRegular() {
				return nil
			}
			out = append(out, path)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// TestBelonging checks which images a build names.
func TestBelonging(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	cases := map[string]struct {
		reason  string
		digests string
		name    string
		want    string
	}{
		"Development": {reason: "The tag belongs to the tree.", name: Agent, want: "registry.example/mirror/agent:v1"},
		"Release":     {reason: "A release is built after its images.", digests: "other=sha256:b,agent=" + digest, name: Agent, want: "registry.example/mirror/agent@" + digest},
		"Unknown":     {reason: "An image without a digest keeps its tag.", digests: "agent=" + digest, name: Extension, want: "registry.example/mirror/extension:v1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() { Digests = "" })
			Digests = tc.digests
			if diff := cmp.Diff(tc.want, Belonging("registry.example/mirror", tc.name, "v1")); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestMentions checks that files name no product that does not exist.
func TestMentions(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range files(t) {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range mentions.FindAllString(string(b), -1) {
			name := strings.Trim(strings.TrimPrefix(strings.TrimPrefix(m, Organization+"/"), Object("")), "-")
			if name == "" || m == Charts {
				continue
			}
			if !slices.ContainsFunc(All(), func(p Product) bool { return p.Name == name }) {
				t.Errorf("%s names %q, which is not a product", strings.TrimPrefix(f, root+"/"), m)
			}
			seen[name] = true
		}
	}
	for _, p := range All() {
		if p.Name != Agent && !seen[p.Name] {
			t.Errorf("no manifest or page names %s", p.Name)
		}
	}
}

// TestMetadata checks that each package has its product's name, and that configurations
// depend on all other packages.
func TestMetadata(t *testing.T) {
	for _, p := range All() {
		if p.Package == "" {
			continue
		}
		b, err := os.ReadFile(filepath.Join(root, p.Package, "crossplane.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		m := &pkgmetav1.Configuration{}
		if err := yaml.Unmarshal(b, m); err != nil {
			t.Fatal(err)
		}
		if m.Name != p.Name || !strings.EqualFold(m.Kind, string(p.Kind)) {
			t.Errorf("%s: got %s %s, want %s %s", p.Package, m.Kind, m.Name, p.Kind, p.Name)
		}
		if p.Kind != KindConfiguration {
			continue
		}
		var want, got []string
		for _, d := range Packages(p.Flavour) {
			if d.Name != p.Name {
				want = append(want, Organization+"/"+d.Name)
			}
		}
		for _, d := range m.Spec.DependsOn {
			if d.Package != nil && strings.HasPrefix(*d.Package, Organization+"/") {
				got = append(got, *d.Package)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: dependencies: -want, +got:\n%s", p.Package, diff)
		}
	}
}
