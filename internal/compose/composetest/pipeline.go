// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package composetest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/xcrd"
	xpextv1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"
	xpextv2 "github.com/crossplane/crossplane/apis/v2/apiextensions/v2"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/tailscale-gateway/tailscale-gateway/internal/golden"
	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
)

// function is the name of the product's function once it is installed.
var function = products.Object(products.Function)

// Pipeline runs the steps of a Composition, composition.yaml of a folder, whose inputs are of this
// function's kind, one after the other as Crossplane does, for the composite app.yaml of the same
// folder. It compares the result of the last step with testdata/pipeline/out.yaml;
// testdata/pipeline/cluster.yaml is the cluster, from which requirements are met. The composite and
// the fields that the steps set in it must match definition.yaml, the XRD.
func Pipeline(t *testing.T, fn fnv1.FunctionRunnerServiceServer, kind, dir string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "composition.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	composition := &xpextv1.Composition{}
	if err := yaml.UnmarshalStrict(b, composition); err != nil {
		t.Fatal(err)
	}
	testdata := filepath.Join("testdata", "pipeline")
	objects := load(t, filepath.Join(testdata, "cluster.yaml"))
	c := load(t, filepath.Join(dir, "app.yaml"))
	c.objects = append([]*structpb.Struct{objects.composite}, objects.objects...)
	xrd := definition(t, filepath.Join(dir, "definition.yaml"))
	checkKnown(t, xrd, c.composite)

	var rsp *fnv1.RunFunctionResponse
	for _, s := range composition.Spec.Pipeline {
		if s.FunctionRef.Name != function {
			continue
		}
		m := map[string]any{}
		if err := yaml.Unmarshal(s.Input.Raw, &m); err != nil {
			t.Fatalf("step %s: %v", s.Step, err)
		}
		if m["kind"] != kind+"Input" {
			continue
		}
		if c.input, err = structpb.NewStruct(m); err != nil {
			t.Fatalf("step %s: %v", s.Step, err)
		}
		rsp = c.settle(t, fn)
		c.checkRules(t, rsp)
		checkStable(t, c, fn, rsp)
		checkKeepsEarlier(t, c, fn)
		checkKnown(t, xrd, rsp.GetDesired().GetComposite().GetResource())
		c.desired = rsp.GetDesired()
	}
	if rsp == nil {
		t.Fatalf("%s: no step is of this function", dir)
	}
	digests := &golden.Digests{}
	golden.Compare(t, filepath.Join(testdata, "out.yaml"), render(t, rsp, digests), digests)
}

// definition returns the schema that Crossplane creates for an XRD.
func definition(t *testing.T, path string) *schema.Structural {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	xrd := &xpextv2.CompositeResourceDefinition{}
	if err := yaml.UnmarshalStrict(b, xrd); err != nil {
		t.Fatal(err)
	}
	j, err := json.Marshal(xrd)
	if err != nil {
		t.Fatal(err)
	}
	// Crossplane derives CustomResourceDefinitions from the older version, which
	// has the same fields.
	old := &xpextv1.CompositeResourceDefinition{}
	if err := json.Unmarshal(j, old); err != nil {
		t.Fatal(err)
	}
	crd, err := xcrd.ForCompositeResource(old)
	if err != nil {
		t.Fatal(err)
	}
	internal := &apiextensions.JSONSchemaProps{}
	if err := extv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, internal, nil); err != nil {
		t.Fatal(err)
	}
	s, err := schema.NewStructural(internal)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// checkKnown fails the test for fields that a schema lacks: the API server would reject them when
// Crossplane applies the object.
func checkKnown(t *testing.T, s *schema.Structural, o *structpb.Struct) {
	t.Helper()
	for _, f := range pruning.PruneWithOptions(o.AsMap(), s, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}) {
		t.Errorf("the definition of the composite lacks %s", f)
	}
}
