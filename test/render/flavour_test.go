// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package render

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tailscale-gateway/tailscale-gateway/package/configuration"
	claims "github.com/tailscale-gateway/tailscale-gateway/package/configuration-claims"
	"github.com/tailscale-gateway/tailscale-gateway/package/function/input"
	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

// claimSuffix replaces the random suffix in the name of a claim's composite.
const claimSuffix = "-abcde"

// A kind of composite.
type kind struct {
	gk schema.GroupKind

	// claim is the kind of its claims. Empty when there are none.
	claim string

	// namespaced composites are in the namespace of their user.
	namespaced bool

	// definition and composition are files.
	definition  string
	composition string
}

// A flavour is a way to install the project: a folder of definitions and compositions.
type flavour struct {
	name string

	// extensions are the files and folders with the definitions of all kinds.
	extensions []string

	kinds []*kind
}

// flavours returns all flavours, by name.
func flavours(t *testing.T) []*flavour {
	t.Helper()
	dir := t.TempDir()
	inputs := unpack(t, dir, "input", input.Files)
	var out []*flavour
	for _, c := range []struct {
		name  string
		files func() (map[string][]byte, error)
	}{
		{name: "configuration", files: configuration.Files},
		{name: "configuration-claims", files: claims.Files},
	} {
		d := unpack(t, dir, c.name, c.files)
		f := &flavour{name: c.name, extensions: []string{
			filepath.Join(d, "xrds"),
			filepath.Join(root, "package", "provider", "crds"),
			inputs,
			filepath.Join(module(t, "sigs.k8s.io/gateway-api"), "config", "crd", "standard"),
			filepath.Join(module(t, "github.com/envoyproxy/gateway"), "charts", "gateway-helm", "charts", "crds", "crds", "generated"),
			filepath.Join(certManager(t), "deploy", "crds"),
		}}
		f.add(t, glob(t, filepath.Join(d, "xrds", "*.yaml")), glob(t, filepath.Join(d, "compositions", "*.yaml")))
		if len(f.kinds) == 0 {
			t.Fatalf("%s defines nothing", c.name)
		}
		out = append(out, f)
	}
	return out
}

// unpack writes the files of a package to a folder, and returns the folder.
func unpack(t *testing.T, dir, name string, files func() (map[string][]byte, error)) string {
	t.Helper()
	all, err := files()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, name)
	for f, b := range all {
		path := filepath.Join(out, f)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// module returns the folder of a module in the project's requirements.
func module(t *testing.T, path string) string {
	t.Helper()
	dir, err := apiserver.ModuleDir(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// certManager returns the folder of cert-manager's module, which is not in the project's
// requirements.
func certManager(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "github.com/cert-manager/cert-manager")
	cmd.Dir = filepath.Join(root, "cluster", "tools", "cert-manager")
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot download cert-manager's module: %v", err)
	}
	m := struct{ Dir string }{}
	if err := json.Unmarshal(out, &m); err != nil {
		t.Fatalf("cannot parse where cert-manager's module is: %v", err)
	}
	return m.Dir
}

// with returns the flavour with the definitions and compositions of an example.
func (f *flavour) with(t *testing.T, files []string) *flavour {
	t.Helper()
	out := &flavour{name: f.name, extensions: f.extensions, kinds: f.kinds}
	var definitions, compositions []string
	for _, file := range files {
		for _, o := range read(t, file) {
			switch o.GetKind() {
			case "CompositeResourceDefinition":
				definitions = append(definitions, file)
			case "Composition":
				compositions = append(compositions, file)
			}
		}
	}
	out.extensions = append(out.extensions[:len(out.extensions):len(out.extensions)], definitions...)
	out.add(t, definitions, compositions)
	return out
}

// add adds the kinds of definitions, one in each file, and their compositions, one in each file.
func (f *flavour) add(t *testing.T, definitions, compositions []string) {
	t.Helper()
	composed := map[schema.GroupKind]string{}
	for _, file := range compositions {
		c := only(t, file)
		gv, err := schema.ParseGroupVersion(str(c, "spec", "compositeTypeRef", "apiVersion"))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		composed[schema.GroupKind{Group: gv.Group, Kind: str(c, "spec", "compositeTypeRef", "kind")}] = file
	}
	for _, file := range definitions {
		d := only(t, file)
		k := &kind{
			gk:         schema.GroupKind{Group: str(d, "spec", "group"), Kind: str(d, "spec", "names", "kind")},
			claim:      str(d, "spec", "claimNames", "kind"),
			namespaced: str(d, "spec", "scope") == "Namespaced",
			definition: file,
		}
		if k.composition = composed[k.gk]; k.composition == "" {
			t.Fatalf("%s: there is no composition for %s", file, k.gk)
		}
		f.kinds = append(f.kinds, k)
	}
}

// composite returns the kind and the composite for an object of an example or for a composed one.
// It returns nil for an object of another kind.
func (f *flavour) composite(o *unstructured.Unstructured) (*kind, *unstructured.Unstructured) {
	gk := o.GroupVersionKind().GroupKind()
	for _, k := range f.kinds {
		switch {
		case gk == k.gk:
			return k, o.DeepCopy()
		case gk.Group == k.gk.Group && gk.Kind == k.claim && k.claim != "":
			return k, k.claimed(o)
		}
	}
	return nil, nil
}

// claimed returns the composite that Crossplane creates for a claim.
func (k *kind) claimed(claim *unstructured.Unstructured) *unstructured.Unstructured {
	xr := claim.DeepCopy()
	xr.SetKind(k.gk.Kind)
	xr.SetName(claim.GetName() + claimSuffix)
	xr.SetNamespace("")
	// The owner of the claim owns only the claim.
	xr.SetOwnerReferences(nil)
	annotations := claim.GetAnnotations()
	if delete(annotations, annotationResourceName); len(annotations) == 0 {
		annotations = nil
	}
	xr.SetAnnotations(annotations)
	labels := map[string]string{}
	for n, v := range claim.GetLabels() {
		labels[n] = v
	}
	labels["crossplane.io/claim-name"] = claim.GetName()
	labels["crossplane.io/claim-namespace"] = claim.GetNamespace()
	labels["crossplane.io/composite"] = xr.GetName()
	xr.SetLabels(labels)
	ref := map[string]any{"apiVersion": claim.GetAPIVersion(), "kind": claim.GetKind(), "namespace": claim.GetNamespace(), "name": claim.GetName()}
	if err := unstructured.SetNestedMap(xr.Object, ref, "spec", "claimRef"); err != nil {
		panic(err) // Not reached: a claim's spec is a map.
	}
	return xr
}

// claimOf returns the claim of a composite, with its status as Crossplane writes it, or nil if
// there is none.
func (k *kind) claimOf(xr *unstructured.Unstructured) *unstructured.Unstructured {
	name := xr.GetLabels()["crossplane.io/claim-name"]
	if k.claim == "" || name == "" {
		return nil
	}
	claim := xr.DeepCopy()
	claim.SetKind(k.claim)
	claim.SetName(name)
	claim.SetNamespace(xr.GetLabels()["crossplane.io/claim-namespace"])
	return claim
}

// only returns the only object of a file.
func only(t *testing.T, file string) *unstructured.Unstructured {
	t.Helper()
	objects := read(t, file)
	if len(objects) != 1 {
		t.Fatalf("%s: want one object, got %d", file, len(objects))
	}
	return objects[0]
}

// str returns a field of an object, or an empty string.
func str(o *unstructured.Unstructured, path ...string) string {
	s, _, err := unstructured.NestedString(o.Object, path...)
	if err != nil {
		return ""
	}
	return s
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return files
}
