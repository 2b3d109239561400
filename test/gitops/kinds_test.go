// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/golden"
)

const (
	// patchPath is the patch for Argo CD's ConfigMap.
	patchPath = root + "/package/argocd/argocd-cm.yaml"

	// expressionsPath has the expressions for Flux, a kind each.
	expressionsPath = root + "/package/flux/healthcheckexprs.yaml"

	// keyPrefix is the start of Argo CD's keys, which continue with the group, an underscore and
	// the kind (argo-cd docs/operator-manual/health.md). They have no wildcards, but a patch of them
	// leaves the checks of others unchanged.
	keyPrefix = "resource.customizations.health."

	// maxPatch is how large the patch may be: a ConfigMap is smaller than 1 MiB, and the annotation
	// with which kubectl apply keeps it is smaller than 256 KiB.
	maxPatch = 200 << 10
)

// all returns the kinds of all checks, sorted, with their checks.
func all() (kinds []schema.GroupVersionKind, byKind map[schema.GroupVersionKind]Check) {
	byKind = map[schema.GroupVersionKind]Check{}
	for c, groups := range checks {
		for gv, names := range groups {
			for _, k := range names {
				gvk := gv.WithKind(k)
				if other, exists := byKind[gvk]; exists {
					panic(fmt.Sprintf("%s has the checks %s and %s", gvk, c, other))
				}
				byKind[gvk] = c
				kinds = append(kinds, gvk)
			}
		}
	}
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return kinds, byKind
}

// TestKinds checks that every kind that the packages and the charts install has exactly one check,
// and that no check is for a kind that does not exist.
func TestKinds(t *testing.T) {
	want, _ := all()
	installed := definitions(t, filepath.Join(root, "package"))
	slices.SortFunc(installed, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	if diff := cmp.Diff(installed, want); diff != "" {
		t.Errorf("kinds of CRDs and XRDs (-), kinds with a health check (+):\n%s", diff)
	}

	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{gatewayv1alpha1.AddToScheme, tailnetv1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	for _, gvk := range want {
		if !s.Recognizes(gvk) {
			t.Errorf("%s has a health check and no type", gvk)
		}
	}
}

// definitions returns the kinds of the CRDs and XRDs below a folder. Claims have the same kinds.
func definitions(t *testing.T, dir string) []schema.GroupVersionKind {
	t.Helper()
	var out []schema.GroupVersionKind
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, doc := range bytes.Split(b, []byte("\n---\n")) {
			o := struct {
				Kind string `json:"kind"`
				Spec struct {
					Group string `json:"group"`
					Names struct {
						Kind string `json:"kind"`
					} `json:"names"`
					Versions []struct {
						Name string `json:"name"`
					} `json:"versions"`
				} `json:"spec"`
			}{}
			if err := yaml.Unmarshal(doc, &o); err != nil {
				// Templates of charts are no YAML. A kind that is only there is missed below.
				continue
			}
			if o.Kind != "CustomResourceDefinition" && o.Kind != "CompositeResourceDefinition" || !strings.HasSuffix(o.Spec.Group, "tailscale.com") {
				continue
			}
			if strings.HasPrefix(o.Spec.Group, "fn.") {
				continue // Inputs of functions are no objects in a cluster.
			}
			for _, v := range o.Spec.Versions {
				out = append(out, schema.GroupVersionKind{Group: o.Spec.Group, Version: v.Name, Kind: o.Spec.Names.Kind})
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestPatch checks that the patch for Argo CD's ConfigMap has, for each kind, the script of its
// check, and nothing else.
func TestPatch(t *testing.T) {
	kinds, byKind := all()
	var out bytes.Buffer
	out.WriteString(`# Copyright 2026 The Tailscale Gateway Authors
# SPDX-License-Identifier: Apache-2.0
#
# Health checks for Argo CD, made from the files in health by: go test ./test/gitops -update
#
#     kubectl patch configmap argocd-cm --namespace argocd --patch-file argocd-cm.yaml
apiVersion: v1
kind: ConfigMap
metadata:
  name: argocd-cm
  namespace: argocd
  labels:
    app.kubernetes.io/name: argocd-cm
    app.kubernetes.io/part-of: argocd
data:
`)
	want, written := map[string]string{}, map[Check]bool{}
	for _, gvk := range kinds {
		c := byKind[gvk]
		script, err := c.Script(root)
		if err != nil {
			t.Fatal(err)
		}
		key := keyPrefix + gvk.Group + "_" + gvk.Kind
		want[key] = script
		if written[c] {
			fmt.Fprintf(&out, "  %s: *%s\n", key, c)
			continue
		}
		written[c] = true
		fmt.Fprintf(&out, "  %s: &%s |\n", key, c)
		for line := range strings.Lines(script) {
			if line != "\n" {
				out.WriteString("    ")
			}
			out.WriteString(line)
		}
	}
	golden.Compare(t, patchPath, out.Bytes(), nil)

	b, err := os.ReadFile(patchPath)
	if err != nil {
		t.Fatal(err)
	}
	got := &corev1.ConfigMap{}
	if err := yaml.UnmarshalStrict(b, got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.Data); diff != "" {
		t.Errorf("data of the patch: -want, +got:\n%s", diff)
	}
	size := 0
	for k, v := range got.Data {
		size += len(k) + len(v)
	}
	if size > maxPatch {
		t.Errorf("the patch has %d bytes, want at most %d", size, maxPatch)
	}
	checkUsed(t, filepath.Join(root, "package", "argocd", "health", "*.lua"), written)
}

// TestExpressions checks that the file for Flux has, for each kind that users apply, the expressions
// of its check.
func TestExpressions(t *testing.T) {
	kinds, byKind := all()
	var want []Expressions
	written := map[Check]bool{}
	for _, gvk := range kinds {
		c := byKind[gvk]
		if c == MachineSets || c == Plain || gvk.Kind == "TailscaleRevision" {
			continue // Without a state, or not written by users.
		}
		e, err := c.Expressions(root)
		if err != nil {
			t.Fatal(err)
		}
		e.APIVersion, e.Kind = gvk.GroupVersion().String(), gvk.Kind
		want = append(want, *e)
		written[c] = true
	}
	b, err := yaml.Marshal(map[string]any{"spec": map[string]any{"healthCheckExprs": want}})
	if err != nil {
		t.Fatal(err)
	}
	out := append([]byte(`# Copyright 2026 The Tailscale Gateway Authors
# SPDX-License-Identifier: Apache-2.0
#
# Health checks for Flux, made from the files in health by: go test ./test/gitops -update
# Copy the kinds that a Kustomization of Flux applies into its spec, or apply all as a patch:
#
#     kubectl patch kustomizations.kustomize.toolkit.fluxcd.io NAME --namespace flux-system --type merge --patch-file healthcheckexprs.yaml
`), b...)
	golden.Compare(t, expressionsPath, out, nil)
	checkUsed(t, filepath.Join(root, "package", "flux", "health", "*.yaml"), written)
}

// checkUsed fails the test for files of a pattern that no kind uses.
func checkUsed(t *testing.T, pattern string, used map[Check]bool) {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) != len(used) {
		t.Errorf("%s matches %d files, and kinds use %d", pattern, len(paths), len(used))
	}
	for _, p := range paths {
		name := strings.TrimSuffix(filepath.Base(p), filepath.Ext(p))
		if !used[Check(name)] {
			t.Errorf("%s: no kind uses it", p)
		}
	}
}
