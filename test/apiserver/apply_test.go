//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tailscale-gateway/tailscale-gateway/internal/golden"
	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
	"github.com/tailscale-gateway/tailscale-gateway/test/standalone"
)

// foreign are the groups of examples that others define and that this API server does not serve.
var foreign = map[string]bool{
	"apiextensions.crossplane.io": true, "cert-manager.io": true, "platform.example.org": true, "argoproj.io": true,
	"helm.toolkit.fluxcd.io": true, "kustomize.toolkit.fluxcd.io": true, "source.toolkit.fluxcd.io": true, "kustomize.config.k8s.io": true,
}

// TestApplyTwice applies every example as GitOps tools do, and then again: nothing may change, not
// even after Crossplane wrote its fields or another tool applied the same manifest. The golden file
// has the lists whose items have defaults, which cost two of these tools a comparison; a new one
// shows there.
func TestApplyTwice(t *testing.T) {
	for name, claims := range map[string]bool{"Composites": false, "Claims": true} {
		t.Run(name, func(t *testing.T) {
			crds, err := standalone.CRDs(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			root, err := apiserver.Root()
			if err != nil {
				t.Fatal(err)
			}
			crds = append(crds, filepath.Join(root, charts.ExtensionCRDs))
			c := startServer(t, apiserver.Options{CRDs: crds, Composites: !claims, Claims: claims})
			a := &applier{T: t, c: c, claims: claims, patched: map[string]bool{}, conflicts: map[string]bool{}}
			for _, f := range exampleFiles(t, root) {
				if isDesign(f) {
					continue // TestDesigns applies them.
				}
				for _, o := range objectsOf(t, f) {
					if foreign[o.GroupVersionKind().Group] {
						continue
					}
					a.subject = fmt.Sprintf("%s: %s %s", strings.TrimPrefix(f, root+"/"), o.GetKind(), o.GetName())
					a.namespace(o.GetNamespace())
					a.serverSide(o)
					a.clientSide(o)
					a.count++
				}
			}
			if a.count < 100 {
				t.Errorf("the examples have %d objects", a.count)
			}
			if claims {
				return // The same fields.
			}
			var out strings.Builder
			out.WriteString("# Lists that kubectl apply sends again each time, because their items have defaults.\n")
			for _, f := range slices.Sorted(maps.Keys(a.patched)) {
				out.WriteString(f + "\n")
			}
			out.WriteString("# Atomic lists that conflict when two managers apply the same manifest, for the same reason.\n")
			for _, f := range slices.Sorted(maps.Keys(a.conflicts)) {
				out.WriteString(f + "\n")
			}
			golden.Compare(t, filepath.Join("testdata", "defaulted.txt"), []byte(out.String()), nil)
		})
	}
}

// An applier applies objects.
type applier struct {
	*testing.T

	c      client.Client
	claims bool
	count  int

	// subject is the example and the object in turn.
	subject string

	// patched are the fields of our kinds that kubectl apply, and tools that compare as it does, send
	// again each time: lists whose items have defaults. The API server ignores them.
	patched map[string]bool

	// conflicts are the fields of our kinds for which a second manager with the same manifest needs
	// force: atomic lists whose items have defaults.
	conflicts map[string]bool
}

// namespace creates a namespace unless it exists.
func (a *applier) namespace(name string) {
	a.Helper()
	if name == "" {
		return
	}
	err := a.c.Create(a.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	if err != nil && !kerrors.IsAlreadyExists(err) {
		a.Fatal(err)
	}
}

// serverSide applies an object by server-side apply, as Argo CD does with ServerSideApply=true and as
// Flux does.
func (a *applier) serverSide(manifest *unstructured.Unstructured) {
	a.Helper()
	first := a.apply(manifest, "argocd-controller")
	if !ours(first) {
		// Gateway API's CRDs have a default for the status, which the API server stores with the
		// second write; a namespace gets its record of owners then.
		first = a.apply(manifest, "argocd-controller")
	}
	a.contained(manifest.Object, first.Object, "")
	a.unchanged(first, a.apply(manifest, "argocd-controller"), "applied again")
	a.unchanged(first, a.apply(manifest, "argocd-controller", client.DryRunAll), "compared by a dry run (ServerSideDiff)")

	// Crossplane and our provider write other fields. They must not look like drift.
	written := a.controllers(first)
	a.unchanged(written, a.apply(manifest, "argocd-controller"), "applied after the controllers wrote it")

	// Another tool with the same manifest changes nothing but the record of the owners of fields.
	other := a.adopt(manifest, "kustomize-controller")
	a.same(written, other, "applied by another manager")
	a.unchanged(other, a.apply(manifest, "kustomize-controller"), "applied by another manager again")
	a.delete(other)
}

// clientSide applies an object as kubectl apply does, and then adopts it by server-side apply.
func (a *applier) clientSide(manifest *unstructured.Unstructured) {
	a.Helper()
	o := annotated(a.T, manifest)
	if err := a.c.Create(a.Context(), o, client.FieldOwner("kubectl-client-side-apply")); err != nil {
		if !kerrors.IsAlreadyExists(err) {
			a.Fatalf("%s: cannot create: %v", a.subject, err)
		}
		// A namespace, which other examples use.
		if o.GetKind() != "Namespace" {
			a.Fatalf("%s: it exists", a.subject)
		}
		return
	}
	live := a.controllers(o)
	if !ours(o) {
		live = a.threeWay(manifest, live) // See serverSide.
	}
	a.unchanged(live, a.threeWay(manifest, live), "applied again by kubectl")
	a.same(live, a.adopt(manifest, "argocd-controller"), "adopted by server-side apply")
	a.delete(live)
}

// apply applies an object by server-side apply without force and returns it. A conflict is a failure.
func (a *applier) apply(manifest *unstructured.Unstructured, owner string, opts ...client.ApplyOption) *unstructured.Unstructured {
	a.Helper()
	o := manifest.DeepCopy()
	if err := a.c.Apply(a.Context(), client.ApplyConfigurationFromUnstructured(o), append(opts, client.FieldOwner(owner))...); err != nil {
		a.Fatalf("%s: %s cannot apply: %v", a.subject, owner, err)
	}
	return o
}

// adopt applies an object that another manager applied, and returns it. It records conflicts, and
// forces them then, as Argo CD and Flux do.
func (a *applier) adopt(manifest *unstructured.Unstructured, owner string) *unstructured.Unstructured {
	a.Helper()
	o := manifest.DeepCopy()
	err := a.c.Apply(a.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner(owner))
	if !kerrors.IsConflict(err) {
		if err != nil {
			a.Fatalf("%s: %s cannot apply: %v", a.subject, owner, err)
		}
		return o
	}
	if ours(manifest) {
		var status kerrors.APIStatus
		if !errors.As(err, &status) || status.Status().Details == nil {
			a.Fatalf("%s: %v", a.subject, err)
		}
		for _, c := range status.Status().Details.Causes {
			a.conflicts[manifest.GetKind()+c.Field] = true
		}
	}
	return a.apply(manifest, owner, client.ForceOwnership)
}

// threeWay patches a live object as kubectl apply does (kubernetes/kubectl pkg/cmd/apply/patcher.go):
// with a strategic merge patch for kinds of Kubernetes, and with a JSON merge patch for others. It
// returns the object.
func (a *applier) threeWay(manifest, live *unstructured.Unstructured) *unstructured.Unstructured {
	a.Helper()
	original := []byte(live.GetAnnotations()[corev1.LastAppliedConfigAnnotation])
	modified, err := json.Marshal(annotated(a.T, manifest))
	if err != nil {
		a.Fatal(err)
	}
	current, err := json.Marshal(live)
	if err != nil {
		a.Fatal(err)
	}
	var patch []byte
	typ := types.MergePatchType
	if typed, notFound := scheme.Scheme.New(live.GroupVersionKind()); notFound == nil {
		typ = types.StrategicMergePatchType
		var m strategicpatch.PatchMetaFromStruct
		if m, err = strategicpatch.NewPatchMetaFromStruct(typed); err != nil {
			a.Fatal(err)
		}
		patch, err = strategicpatch.CreateThreeWayMergePatch(original, modified, current, m, true)
	} else {
		patch, err = jsonmergepatch.CreateThreeWayJSONMergePatch(original, modified, current)
	}
	if err != nil {
		a.Fatalf("%s: cannot create a patch: %v", a.subject, err)
	}
	if string(patch) != "{}" && ours(live) {
		var p map[string]any
		if err := json.Unmarshal(patch, &p); err != nil {
			a.Fatal(err)
		}
		for _, field := range leaves(p, "") {
			a.patched[live.GetKind()+field] = true
		}
	}
	o := live.DeepCopy()
	if err := a.c.Patch(a.Context(), o, client.RawPatch(typ, patch), client.FieldOwner("kubectl-client-side-apply")); err != nil {
		a.Fatalf("%s: cannot patch: %v", a.subject, err)
	}
	return o
}

// controllers writes into an object of ours as Crossplane and the provider do, and returns it.
// Objects of other kinds stay unchanged.
func (a *applier) controllers(o *unstructured.Unstructured) *unstructured.Unstructured {
	a.Helper()
	spec := map[string]any{}
	switch gvk := o.GroupVersionKind(); {
	case gvk.Group == "gateway.tailscale.com" && gvk.Kind != "TailscaleRoutePolicy" && a.claims:
		// crossplane v2.4 internal/controller/apiextensions/claim/syncer_ssa.go.
		spec["resourceRef"] = map[string]any{"apiVersion": o.GetAPIVersion(), "kind": "X" + o.GetKind(), "name": o.GetName() + "-abcde"}
		spec["compositionRef"] = map[string]any{"name": "any"}
	case gvk.Group == "gateway.tailscale.com" && gvk.Kind != "TailscaleRoutePolicy":
		// crossplane v2.4 internal/controller/apiextensions/composite/composition_functions.go.
		spec["crossplane"] = map[string]any{
			"compositionRef": map[string]any{"name": "any"},
			"resourceRefs":   []any{map[string]any{"apiVersion": "v1", "kind": "Service", "name": "any"}},
		}
	case gvk.Group == "tailnet.gateway.tailscale.com" && !strings.HasSuffix(gvk.Kind, "ProviderConfig"):
	default:
		return o
	}
	patch, err := json.Marshal(map[string]any{"spec": spec, "metadata": map[string]any{
		"annotations": map[string]any{"crossplane.io/external-name": "any"},
		"labels":      map[string]any{"crossplane.io/composite": "any"},
		"finalizers":  []any{"example.org/any"},
	}})
	if err != nil {
		a.Fatal(err)
	}
	out := o.DeepCopy()
	if err := a.c.Patch(a.Context(), out, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("crossplane")); err != nil {
		a.Fatalf("%s: cannot write as Crossplane: %v", a.subject, err)
	}
	return out
}

// delete deletes an object, whatever its finalizers.
func (a *applier) delete(o *unstructured.Unstructured) {
	a.Helper()
	if o.GetKind() == "Namespace" {
		return
	}
	if err := a.c.Patch(a.Context(), o.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		a.Fatal(err)
	}
	if err := a.c.Delete(a.Context(), o, client.GracePeriodSeconds(0)); err != nil {
		a.Fatal(err)
	}
}

// unchanged fails the test unless an object is the same, including its resource version.
func (a *applier) unchanged(previous, current *unstructured.Unstructured, operation string) {
	a.Helper()
	if previous.GetResourceVersion() != current.GetResourceVersion() {
		a.Errorf("%s: %s, the object has another resource version: -before, +after:\n%s", a.subject, operation, cmp.Diff(previous.Object, current.Object))
	}
	a.same(previous, current, operation)
}

// same fails the test unless an object has the same content.
func (a *applier) same(previous, current *unstructured.Unstructured, operation string) {
	a.Helper()
	if diff := cmp.Diff(content(previous), content(current)); diff != "" {
		a.Errorf("%s: %s, the object is another: -before, +after:\n%s", a.subject, operation, diff)
	}
}

// content returns an object without the record of owners, and without what each write changes.
func content(o *unstructured.Unstructured) map[string]any {
	o = o.DeepCopy()
	o.SetManagedFields(nil)
	o.SetResourceVersion("")
	return o.Object
}

// contained fails the test unless a part of a manifest is in the live object, with lists of the same
// length: a list whose keys have defaults must not get items twice.
func (a *applier) contained(want, got any, path string) {
	a.Helper()
	switch want := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			a.Errorf("%s: %s is %v", a.subject, path, got)
			return
		}
		for k, v := range want {
			if path == "" && k == "stringData" || v == nil {
				continue // The API server replaces it with data.
			}
			a.contained(v, g[k], path+"."+k)
		}
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(want) {
			a.Errorf("%s: %s has the items %v, want %v", a.subject, path, got, want)
			return
		}
		for i := range want {
			a.contained(want[i], g[i], fmt.Sprintf("%s[%d]", path, i))
		}
	}
}

// ours reports whether an object is of a kind of ours.
func ours(o *unstructured.Unstructured) bool {
	return strings.HasSuffix(o.GroupVersionKind().Group, "tailscale.com")
}

// annotated returns an object with the annotation that kubectl apply adds.
func annotated(t *testing.T, o *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	b, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	out := o.DeepCopy()
	as := out.GetAnnotations()
	if as == nil {
		as = map[string]string{}
	}
	// kubectl's annotation ends with a newline.
	as[corev1.LastAppliedConfigAnnotation] = string(b) + "\n"
	out.SetAnnotations(as)
	return out
}

// leaves returns the paths of the values of a patch.
func leaves(m map[string]any, path string) []string {
	var out []string
	for k, v := range m {
		if sub, ok := v.(map[string]any); ok {
			out = append(out, leaves(sub, path+"."+k)...)
			continue
		}
		out = append(out, path+"."+k)
	}
	return out
}

// exampleFiles returns the files of all examples, in the order of their paths.
func exampleFiles(t *testing.T, root string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(filepath.Join(root, "examples"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(path) == ".yaml" {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// objectsOf returns the objects of a file.
func objectsOf(t *testing.T, path string) []*unstructured.Unstructured {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []*unstructured.Unstructured
	for _, doc := range bytes.Split(b, []byte("\n---\n")) {
		j, err := yaml.YAMLToJSON(doc)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(j); runtime.IsMissingKind(err) {
			continue // A part with comments alone.
		} else if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		out = append(out, o)
	}
	return out
}

// startServer starts an API server until the test ends, and returns a client of it.
func startServer(t *testing.T, o apiserver.Options) client.Client {
	t.Helper()
	s, err := apiserver.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	c, err := client.New(s.Config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
