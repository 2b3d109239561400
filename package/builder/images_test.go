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

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	pkgv1beta1 "github.com/crossplane/crossplane/apis/v2/pkg/v1beta1"

	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
)

const root = "../.."

// repositories returns the repositories that images.txt of a release lists: TestRelease shows that it has what
// was pushed, and tailscaled's.
func repositories() map[string]bool {
	tailscale, _, _ := strings.Cut(products.Tailscale, ":")
	out := map[string]bool{tailscale: true, products.Charts + "/" + charts.Install: true, products.Charts + "/" + charts.Extension: true}
	for _, p := range products.All() {
		out[products.Organization+"/"+p.Name] = true
	}
	return out
}

// repository matches the repository of an image with the host of a public registry.
var repository = regexp.MustCompile(`\b(?:docker\.io|ghcr\.io|quay\.io|gcr\.io|registry\.k8s\.io|public\.ecr\.aws|mcr\.microsoft\.com|xpkg\.[a-z.]+)(?:/[a-z0-9][a-z0-9._-]*)+`)

// TestComplete checks that code, packages and charts name no image that the list lacks.
func TestComplete(t *testing.T) {
	listed := repositories()
	// A prefix of ours, the second repository of Tailscale, which users may name, and the chart of
	// Envoy Gateway, which users install.
	listed[products.Organization], listed["ghcr.io/tailscale/tailscale"], listed["docker.io/envoyproxy/gateway-helm"] = true, true, true
	named := map[string]bool{}
	for _, dir := range []string{"cmd", "extension", "functions", "internal", "package"} {
		if err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() {
				if d.Name() == "testdata" {
					return fs.SkipDir
				}
				return nil
			}
			// A symbolic link has the content of another path.
			if strings.HasSuffix(path, "_test.go") || !d.Type().IsRegular() {
				return nil
			}
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, r := range repository.FindAllString(string(b), -1) {
				if r = strings.TrimRight(r, "."); !listed[r] {
					t.Errorf("%s names %s, which the list lacks", path, r)
				}
				named[r] = true
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if !named["docker.io/tailscale/tailscale"] {
		t.Error("no file names tailscaled's image: the search is broken")
	}
}

// setting matches a flag that names an image.
var setting = regexp.MustCompile(`\b([A-Z]\w*)Image\s+string\s+` + "`")

// TestPage checks that docs/airgap.md names every image, every package, and every setting of an
// image.
func TestPage(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(root, "docs/airgap.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	for r := range repositories() {
		if !strings.Contains(page, "`"+r+"`") {
			t.Errorf("the page does not name %s", r)
		}
	}
	var settings []string
	for _, f := range []string{"cmd/provider/flags.go", "cmd/function/main.go", "cmd/agent/main.go", "extension/main.go"} {
		src, err := os.ReadFile(filepath.Join(root, f))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range setting.FindAllStringSubmatch(string(src), -1) {
			settings = append(settings, "--"+strings.ToLower(m[1])+"-image")
		}
	}
	slices.Sort(settings)
	if diff := cmp.Diff([]string{"--agent-image", "--extension-image", "--tailscale-image"}, settings); diff != "" {
		t.Errorf("the binaries have other settings of images: -known, +got:\n%s", diff)
	}
	for _, s := range settings {
		if !strings.Contains(page, s) {
			t.Errorf("the page does not explain %s", s)
		}
	}
}

// TestExamples checks that the manifests of the page are valid, and that they name images where
// the script of the page copies them.
func TestExamples(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(root, "docs/airgap.md"))
	if err != nil {
		t.Fatal(err)
	}
	copied := map[string]bool{}
	for _, image := range []string{products.Image(products.Agent, "v0.1.0"), products.Image(products.Extension, "v0.1.0"), products.Tailscale} {
		_, path, _ := strings.Cut(image, "/")
		copied["registry.example.com/mirror/"+path] = true
		// --image-registry names no image.
		copied["registry.example.com/mirror/"+path[:strings.LastIndex(path, "/")]] = true
	}
	var kinds []string
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(b), -1) {
		for doc := range strings.SplitSeq(block[1], "---\n") {
			var typeMeta metav1.TypeMeta
			if err := yaml.Unmarshal([]byte(doc), &typeMeta); err != nil {
				t.Fatal(err)
			}
			// Values of the chart are no object.
			if typeMeta.Kind == "" {
				continue
			}
			kinds = append(kinds, typeMeta.Kind)
			switch typeMeta.Kind {
			case "ImageConfig":
				c := &pkgv1beta1.ImageConfig{}
				if err := yaml.UnmarshalStrict([]byte(doc), c); err != nil {
					t.Error(err)
				}
				if r := c.Spec.RewriteImage; r != nil && r.Prefix != "registry.example.com/mirror"+strings.TrimPrefix(c.Spec.MatchImages[0].Prefix, "ghcr.io") {
					t.Errorf("%s rewrites to %s, where the script copies nothing", c.Name, r.Prefix)
				}
			case "DeploymentRuntimeConfig":
				c := &pkgv1beta1.DeploymentRuntimeConfig{}
				if err := yaml.UnmarshalStrict([]byte(doc), c); err != nil {
					t.Fatal(err)
				}
				for _, arg := range c.Spec.DeploymentTemplate.Spec.Template.Spec.Containers[0].Args {
					if flag, image, _ := strings.Cut(arg, "="); !copied[image] {
						t.Errorf("%s of %s is %s, where the script copies nothing", flag, c.Name, image)
					}
				}
			}
		}
	}
	if want := []string{"ImageConfig", "ImageConfig", "DeploymentRuntimeConfig", "ImageConfig", "DeploymentRuntimeConfig", "ImageConfig"}; !slices.Equal(want, kinds) {
		t.Errorf("the page has the objects %v, want %v", kinds, want)
	}
}
