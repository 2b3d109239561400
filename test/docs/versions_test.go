// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscaled"
)

// A version row of docs/compatibility.md.
type versions struct{ minimum, tested string }

// stated returns the rows of the table of versions, by component.
func stated(t *testing.T) map[string]versions {
	t.Helper()
	out := map[string]versions{}
	for _, m := range regexp.MustCompile(`(?m)^\| ([^|]+) \| ([^|]+) \| (\d+\.\d+\.\d+) \|$`).FindAllStringSubmatch(read(t, "docs/compatibility.md"), -1) {
		out[m[1]] = versions{minimum: m[2], tested: m[3]}
	}
	return out
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// required returns the version of a module that a go.mod requires, without the v.
func required(t *testing.T, path, module string) string {
	t.Helper()
	return match(t, path, `(?m)^(?:require|\s)\s*`+regexp.QuoteMeta(module)+` v(\S+)`)
}

var lowerBound = regexp.MustCompile(`^>=v?(\d+\.\d+)\.\d+(?:-0)?$`)

// minor returns the major and minor version of a constraint such as ">=v2.4.0-0".
func minor(t *testing.T, constraint string) string {
	t.Helper()
	m := lowerBound.FindStringSubmatch(constraint)
	if m == nil {
		t.Fatalf("%q is not a lower bound", constraint)
	}
	return m[1]
}

// manifest is the part of a package's or a chart's metadata that has versions.
type manifest struct {
	KubeVersion string `json:"kubeVersion"`
	Spec        struct {
		Crossplane struct {
			Version string `json:"version"`
		} `json:"crossplane"`
	} `json:"spec"`
}

// manifests returns the files that match a pattern.
func manifests(t *testing.T, pattern string) map[string]manifest {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, pattern))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]manifest{}
	for _, f := range files {
		path, err := filepath.Rel(root, f)
		if err != nil {
			t.Fatal(err)
		}
		var m manifest
		if err := yaml.Unmarshal([]byte(read(t, path)), &m); err != nil {
			t.Fatal(err)
		}
		out[path] = m
	}
	if len(out) == 0 {
		t.Fatalf("nothing matches %s", pattern)
	}
	return out
}

// TestVersions checks that docs/compatibility.md states the versions that modules, packages and
// charts require, and that other pages state no others.
func TestVersions(t *testing.T) {
	got := stated(t)
	minimum := func(component string) string { return got[component].minimum }
	const chart = "package/charts/tailscale-gateway-extension/Chart.yaml"
	charts := manifests(t, "package/charts/*/Chart.yaml")

	gateway := required(t, "go.mod", "github.com/envoyproxy/gateway")
	kubernetes := required(t, "cluster/tools/kubernetes/go.mod", "k8s.io/kubernetes")
	want := map[string]versions{
		// The README's requirement, which the text explains.
		"Kubernetes":                          {minimum: match(t, "README.md", `Kubernetes (\d+\.\d+) or newer`), tested: kubernetes},
		"Kubernetes, for the extension alone": {minimum: minor(t, charts[chart].KubeVersion), tested: kubernetes},
		"Crossplane":                          {minimum: minor(t, manifests(t, "package/configuration/crossplane.yaml")["package/configuration/crossplane.yaml"].Spec.Crossplane.Version), tested: required(t, "cluster/tools/crossplane/go.mod", "github.com/crossplane/crossplane/v2")},
		// The hooks are those of this version.
		"Envoy Gateway, for the extension": {minimum: minor(t, ">=v"+gateway), tested: gateway},
		"Gateway API, for the extension":   {minimum: "that of Envoy Gateway's chart", tested: required(t, "go.mod", "sigs.k8s.io/gateway-api")},
		"tailscaled, in proxies":           {minimum: tailscaled.Oldest, tested: required(t, "go.mod", "tailscale.com")},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(versions{})); diff != "" {
		t.Errorf("-required versions, +stated versions:\n%s", diff)
	}

	if _, tag, _ := strings.Cut(products.Tailscale, ":v"); tag != got["tailscaled, in proxies"].tested {
		t.Errorf("proxies run tailscaled %s, and tests %s", tag, got["tailscaled, in proxies"].tested)
	}
	for path, m := range manifests(t, "package/*/crossplane.yaml") {
		if v := minor(t, m.Spec.Crossplane.Version); v != minimum("Crossplane") {
			t.Errorf("%s requires Crossplane %s, want %s", path, v, minimum("Crossplane"))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(charts)) {
		component := "Kubernetes"
		if path == chart {
			component = "Kubernetes, for the extension alone"
		}
		if v := minor(t, charts[path].KubeVersion); v != minimum(component) {
			t.Errorf("%s requires Kubernetes %s, want %s", path, v, minimum(component))
		}
	}
	for path, pattern := range map[string]string{
		"README.md":             `Install Crossplane v(\d+\.\d+) or newer`,
		"docs/install.md":       `Crossplane v(\d+\.\d+) or newer`,
		"docs/envoy-gateway.md": `Envoy Gateway\]\([^)]*\), v(\d+\.\d+) or newer`,
	} {
		component := map[string]string{"README.md": "Crossplane", "docs/install.md": "Crossplane", "docs/envoy-gateway.md": "Envoy Gateway, for the extension"}[path]
		if v := match(t, path, pattern); v != minimum(component) {
			t.Errorf("%s states %s %s, want %s", path, component, v, minimum(component))
		}
	}
}

// TestReleases checks that the matrix of docs/compatibility.md has a row for main, with the versions of the
// other table, and one for each minor release.
func TestReleases(t *testing.T) {
	rows := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\| (main|v\d+\.\d+) \| (.+) \|$`).FindAllStringSubmatch(read(t, "docs/compatibility.md"), -1) {
		rows[m[1]] = m[2]
	}
	versions := stated(t)
	var cells []string
	for _, component := range []string{"Kubernetes", "Crossplane", "Envoy Gateway, for the extension", "Gateway API, for the extension", "tailscaled, in proxies"} {
		v := versions[component]
		cell := "(" + v.tested + ")"
		// Envoy Gateway's chart has the other versions of Gateway API.
		if component != "Gateway API, for the extension" {
			cell = v.minimum + " " + cell
		}
		cells = append(cells, cell)
	}
	if diff := cmp.Diff(strings.Join(cells, " | "), rows["main"]); diff != "" {
		t.Errorf("-versions, +row of main:\n%s", diff)
	}
	for _, m := range released.FindAllString(read(t, "CHANGELOG.md"), -1) {
		release := regexp.MustCompile(`\d+\.\d+`).FindString(m)
		if rows["v"+release] == "" {
			t.Errorf("docs/compatibility.md has no row for v%s", release)
		}
	}
}

// match returns what the group of a pattern matches in a file.
func match(t *testing.T, path, pattern string) string {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(read(t, path))
	if m == nil {
		t.Fatalf("%s does not match %s", path, pattern)
	}
	return m[1]
}
