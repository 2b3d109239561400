// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package gitops

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apiservercel "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// definitionsOf are the files of CRDs of Argo CD and of Flux, by module and version. Flux's are those of a
// release of Flux v2.7, and docs/gitops.md names both versions.
var definitionsOf = map[string]string{
	"github.com/argoproj/argo-cd/v3@v3.4.13":        "manifests/crds/application-crd.yaml",
	"github.com/fluxcd/helm-controller@v1.4.0":      "config/crd/bases/*.yaml",
	"github.com/fluxcd/kustomize-controller@v1.7.3": "config/crd/bases/*.yaml",
	"github.com/fluxcd/source-controller@v1.7.0":    "config/crd/bases/*.yaml",
}

// module returns the folder of a module that is not in the project's requirements.
func module(t *testing.T, version string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", version)
	// Outside of this module, Go neither reads nor writes its go.sum.
	cmd.Dir = t.TempDir()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot download %s: %v\n%s", version, err, out)
	}
	m := struct{ Dir string }{}
	if err := json.Unmarshal(out, &m); err != nil {
		t.Fatal(err)
	}
	return m.Dir
}

// A validator returns the reasons why an object is invalid.
type validator func(o map[string]any) []string

// validators returns the validators of all kinds of Argo CD and Flux, by apiVersion and kind.
func validators(t *testing.T) map[string]validator {
	t.Helper()
	out := map[string]validator{}
	for version, pattern := range definitionsOf {
		files, err := filepath.Glob(filepath.Join(module(t, version), pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no CRDs: %v", version, err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			crd := &extv1.CustomResourceDefinition{}
			if err := yaml.Unmarshal(b, crd); err != nil {
				t.Fatal(err)
			}
			for _, v := range crd.Spec.Versions {
				out[crd.Spec.Group+"/"+v.Name+" "+crd.Spec.Names.Kind] = validatorOf(t, v.Schema.OpenAPIV3Schema)
			}
		}
	}
	return out
}

// validatorOf returns the validator of a schema. As for kubectl, an unknown field is an error.
func validatorOf(t *testing.T, props *extv1.JSONSchemaProps) validator {
	t.Helper()
	internal := &apiextensions.JSONSchemaProps{}
	if err := extv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, internal, nil); err != nil {
		t.Fatal(err)
	}
	structural, err := schema.NewStructural(internal)
	if err != nil {
		t.Fatal(err)
	}
	openAPI, _, err := validation.NewSchemaValidator(internal)
	if err != nil {
		t.Fatal(err)
	}
	rules := cel.NewValidator(structural, true, apiservercel.PerCallLimit)
	return func(o map[string]any) []string {
		var out []string
		for _, f := range pruning.PruneWithOptions(o, structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}) {
			out = append(out, f+": unknown field")
		}
		errs := validation.ValidateCustomResource(nil, o, openAPI)
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, structural, o)...)
		if rules != nil && len(errs) == 0 {
			errs, _ = rules.Validate(t.Context(), nil, structural, o, nil, apiservercel.RuntimeCELCostBudget)
		}
		for _, e := range errs {
			out = append(out, e.Error())
		}
		return out
	}
}

// TestInstallSchemas validates the objects of Argo CD and Flux by the CRDs of their releases, and first that a
// misspelled field, a missing field and a wrong value are noticed.
func TestInstallSchemas(t *testing.T) {
	kinds := validators(t)
	release := kinds["helm.toolkit.fluxcd.io/v2 HelmRelease"]
	for name, spec := range map[string]map[string]any{
		"Unknown": {"interval": "1m", "chartRef": map[string]any{"kind": "OCIRepository", "name": "a"}, "dependOn": []any{}},
		"Missing": {"interval": "1m"},
		"Wrong":   {"interval": "soon", "chartRef": map[string]any{"kind": "OCIRepository", "name": "a"}},
	} {
		if got := release(map[string]any{"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": map[string]any{"name": "a"}, "spec": spec}); len(got) == 0 {
			t.Errorf("%s: an invalid HelmRelease is accepted", name)
		}
	}
	seen := map[string]int{}
	for _, o := range installs(t, installation) {
		group := o.GroupVersionKind().Group
		if !strings.HasSuffix(group, "toolkit.fluxcd.io") && group != "argoproj.io" {
			continue
		}
		kind := o.GetAPIVersion() + " " + o.GetKind()
		validate, ok := kinds[kind]
		if !ok {
			t.Errorf("%s: no CRD defines %s", o.file, kind)
			continue
		}
		seen[o.GetKind()]++
		for _, problem := range validate(o.Object) {
			t.Errorf("%s: %s %q: %s", o.file, o.GetKind(), o.GetName(), problem)
		}
	}
	for _, k := range []string{"Application", "GitRepository", "HelmRelease", "HelmRepository", "Kustomization", "OCIRepository"} {
		if seen[k] == 0 {
			t.Errorf("no example has a %s", k)
		}
	}
}

// TestInstallValues has Helm check the values of our charts by their schemas, and render them.
func TestInstallValues(t *testing.T) {
	helm := os.Getenv("TEST_ASSET_HELM")
	if helm == "" {
		t.Fatal("TEST_ASSET_HELM must name Helm: use make test-controllers")
	}
	for name, r := range fluxReleases(t) {
		chart := filepath.Join(root, "package", "charts", filepath.Base(r.Chart))
		if !strings.HasPrefix(r.Chart, "ghcr.io/") {
			continue
		}
		values, err := json.Marshal(r.Values)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), helm, "template", name, chart, "--namespace="+r.Namespace, "--kube-version=1.35.4", "--values=-")
		cmd.Stdin = strings.NewReader(string(values))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		if name == "tailscale-gateway" && !strings.Contains(string(out), "tailscale-oauth") {
			t.Error("the chart requests no tailnet")
		}
	}
}
