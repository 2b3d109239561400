// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/spf13/afero"
	"sigs.k8s.io/yaml"

	pkgmetav1 "github.com/crossplane/crossplane/apis/v2/pkg/meta/v1"

	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
	claims "github.com/tailscale-gateway/tailscale-gateway/package/configuration-claims"
	"github.com/tailscale-gateway/tailscale-gateway/package/function/input"
)

func TestProducts(t *testing.T) {
	built := map[string]bool{}
	for _, p := range products.All() {
		if p.Main == "" && p.Package == "" {
			t.Errorf("%s is neither an image nor a package", p.Name)
		}
		built[products.Organization+"/"+p.Name] = true
	}

	// All packages that the configuration depends on must be built.
	c := configuration(t, "../../package/configuration")
	if len(c.DependsOn) == 0 {
		t.Fatal("the configuration depends on nothing")
	}
	for _, d := range c.DependsOn {
		if d.Package == nil || !built[*d.Package] {
			t.Errorf("the configuration depends on %v, which is not built", d)
		}
	}
	// The configuration for claims has the same dependencies.
	if diff := cmp.Diff(c, configuration(t, "../../package/configuration-claims")); diff != "" {
		t.Errorf("the configurations have different dependencies: -namespaced, +claims:\n%s", diff)
	}
}

func configuration(t *testing.T, dir string) pkgmetav1.MetaSpec {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "crossplane.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c := &pkgmetav1.Configuration{}
	if err := yaml.Unmarshal(b, c); err != nil {
		t.Fatal(err)
	}
	return c.Spec.MetaSpec
}

// TestPack builds each package around an empty image. Crossplane's own linter rejects
// content that a package must not have.
func TestPack(t *testing.T) {
	t.Chdir("../..")
	for _, p := range products.All() {
		if p.Package == "" {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			c := &buildCmd{Version: "v1.2.3", Examples: "examples"}
			img, err := c.pack(t.Context(), p, empty.Image)
			if err != nil {
				t.Fatalf("cannot build package: %v", err)
			}
			layers, err := img.Layers()
			if err != nil {
				t.Fatal(err)
			}
			// One layer is for the package, and one for its examples.
			if diff := cmp.Diff(2, len(layers)); diff != "" {
				t.Errorf("-want layers, +got layers:\n%s", diff)
			}
		})
	}
}

// TestMetadata checks what marketplaces show of each package.
func TestMetadata(t *testing.T) {
	t.Chdir("../..")
	icon, err := os.ReadFile(iconPath)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, p := range products.All() {
		if p.Package == "" {
			continue
		}
		fs, err := (&buildCmd{Version: "v1.2.3"}).completed(p)
		if err != nil {
			t.Fatal(err)
		}
		b, err := afero.ReadFile(fs, "/crossplane.yaml")
		if err != nil {
			t.Fatal(err)
		}
		meta := &pkgmetav1.Configuration{}
		if err := yaml.Unmarshal(b, meta); err != nil {
			t.Fatal(err)
		}
		for _, annotation := range []string{"maintainer", "license", "description", "readme"} {
			if meta.Annotations["meta.crossplane.io/"+annotation] == "" {
				t.Errorf("%s has no %s", p.Name, annotation)
			}
		}
		if got := meta.Annotations["meta.crossplane.io/source"]; got != source {
			t.Errorf("%s: the source is %q", p.Name, got)
		}
		friendly := meta.Annotations["friendly-name.meta.crossplane.io"]
		if friendly == "" || names[friendly] {
			t.Errorf("%s: the friendly name %q is empty or that of another package", p.Name, friendly)
		}
		names[friendly] = true
		data, ok := strings.CutPrefix(meta.Annotations[iconAnnotation], "data:image/svg+xml;base64,")
		got, err := base64.StdEncoding.DecodeString(data)
		if !ok || err != nil || !bytes.Equal(icon, got) {
			t.Errorf("%s: the icon is not %s", p.Name, iconPath)
		}
		for _, d := range meta.Spec.DependsOn {
			if d.Version != ">=v1.2.0 <v1.3.0" {
				t.Errorf("%s depends on version %q of %s", p.Name, d.Version, *d.Package)
			}
		}
	}
}

// TestDerived checks that packages have their derived files, and not the incomplete ones of their folders.
func TestDerived(t *testing.T) {
	t.Chdir("../..")
	inputs, err := input.Files()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string][]byte{products.Function: {}}
	for f, b := range inputs {
		want[products.Function][filepath.Join("input", f)] = b
	}
	if want[products.ConfigurationClaims], err = claims.Files(); err != nil {
		t.Fatal(err)
	}
	for _, p := range products.All() {
		for path, b := range want[p.Name] {
			fs, err := (&buildCmd{Version: "v1.2.3"}).completed(p)
			if err != nil {
				t.Fatal(err)
			}
			got, err := afero.ReadFile(fs, filepath.Join("/", path))
			if err != nil {
				t.Errorf("%s: %v", p.Name, err)
			}
			if diff := cmp.Diff(string(b), string(got)); diff != "" {
				t.Errorf("%s: %s: -want, +got:\n%s", p.Name, path, diff)
			}
		}
	}
}

func TestCompleted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "package")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "..", "icon.svg"), []byte("<svg/>"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "crossplane.yaml"), []byte(`version: "*"`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "other.yaml"), []byte(`version: "*"`), 0o600); err != nil {
		t.Fatal(err)
	}
	fs, err := (&buildCmd{Version: "v1.2.3"}).completed(products.Product{Package: dir})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"/crossplane.yaml": `version: ">=v1.2.0 <v1.3.0"`,
		"/other.yaml":      `version: "*"`,
	} {
		got, err := afero.ReadFile(fs, name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal([]byte(want), got) {
			t.Errorf("%s: want %s, got %s", name, want, got)
		}
	}
}
