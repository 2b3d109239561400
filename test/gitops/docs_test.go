// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	pkgv1 "github.com/crossplane/crossplane/apis/v2/pkg/v1"
)

// block matches a block of YAML in a page.
var block = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// page returns docs/gitops.md.
func page(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, "docs", "gitops.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestPage checks the examples of the page about GitOps: each is YAML, and its expressions are the
// tested ones.
func TestPage(t *testing.T) {
	b, err := os.ReadFile(expressionsPath)
	if err != nil {
		t.Fatal(err)
	}
	type kustomization struct {
		Kind string `json:"kind"`
		Spec struct {
			HealthCheckExprs []Expressions `json:"healthCheckExprs"`
		} `json:"spec"`
	}
	tested := kustomization{}
	if err := yaml.Unmarshal(b, &tested); err != nil {
		t.Fatal(err)
	}
	want := map[string]Expressions{}
	for _, e := range tested.Spec.HealthCheckExprs {
		want[e.Kind] = e
	}
	kinds, checked := map[string]int{}, map[string]bool{}
	for _, m := range block.FindAllStringSubmatch(page(t), -1) {
		for doc := range strings.SplitSeq(m[1], "\n---\n") {
			k := kustomization{}
			if err := yaml.Unmarshal([]byte(doc), &k); err != nil {
				t.Fatalf("%v:\n%s", err, doc)
			}
			kinds[k.Kind]++
			for _, e := range k.Spec.HealthCheckExprs {
				checked[e.Kind] = true
				if e.Kind == "Configuration" {
					checkPackages(t, e)
					continue
				}
				if diff := cmp.Diff(want[e.Kind], e); diff != "" {
					t.Errorf("%s: -tested, +page:\n%s", e.Kind, diff)
				}
			}
		}
	}
	if diff := cmp.Diff(map[string]int{"ConfigMap": 1, "Application": 1, "Kustomization": 3}, kinds); diff != "" {
		t.Errorf("examples of the page: -want, +got:\n%s", diff)
	}
	if !checked["TailscaleTailnet"] || !checked["Configuration"] {
		t.Errorf("the page has expressions for %v", checked)
	}
}

// checkPackages checks the expressions for a package of Crossplane.
func checkPackages(t *testing.T, e Expressions) {
	t.Helper()
	for want, conditions := range map[string][][]xpv2.Condition{
		Current:    {{pkgv1.Active(), pkgv1.Healthy()}},
		InProgress: {{}, {pkgv1.Active()}, {pkgv1.Healthy()}, {pkgv1.Active(), pkgv1.Unhealthy()}, {pkgv1.Unpacking(), pkgv1.Healthy()}},
	} {
		for _, cs := range conditions {
			o := object(schema.GroupVersionKind{Group: "pkg.crossplane.io", Version: "v1", Kind: e.Kind})
			set(t, o, "status", map[string]any{"conditions": append([]xpv2.Condition{}, cs...)})
			got, err := e.Evaluate(o)
			if err != nil {
				t.Fatal(err)
			}
			if got != want {
				t.Errorf("a package with the conditions %v is %s, want %s", cs, got, want)
			}
		}
	}
}

// TestPageNames checks that the page names every kind of users in its order of objects, and every
// list that a test found to need ServerSideDiff.
func TestPageNames(t *testing.T) {
	text := strings.Join(strings.Fields(page(t)), " ")
	kinds, byKind := all()
	for _, k := range kinds {
		if (byKind[k] == Composites || k.Kind == "TailscaleRoutePolicy") && !strings.Contains(text, k.Kind) {
			t.Errorf("the page does not name the kind %s", k.Kind)
		}
	}
	b, err := os.ReadFile(filepath.Join(root, "test", "apiserver", "testdata", "defaulted.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		kind, path, found := strings.Cut(strings.TrimSpace(line), ".")
		if !found || strings.HasPrefix(line, "#") {
			continue
		}
		// A key of an item is an example's.
		parts := strings.Split(regexp.MustCompile(`\[[^]]*\]`).ReplaceAllString(path, ""), ".")
		short := "`" + strings.Join(parts[:2], ".") + "`"
		if len(parts) > 2 {
			short = "`" + parts[len(parts)-1] + "`"
		}
		if !regexp.MustCompile(regexp.QuoteMeta(short) + "[^;]{0,60} of a " + kind).MatchString(text) {
			t.Errorf("the page does not name %s of a %s", short, kind)
		}
	}
}
