// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	apiextv2 "github.com/crossplane/crossplane/apis/v2/apiextensions/v2"
)

// A checker refuses objects as the API server does, by the schema of a composite
// resource definition.
type checker struct {
	structural *schema.Structural
	openapi    validation.SchemaValidator
	rules      *cel.Validator
}

func newChecker(t *testing.T, plural string) *checker {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "package", "configuration", "xrds", "gateway.tailscale.com_"+plural+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	xrd := &apiextv2.CompositeResourceDefinition{}
	if err := yaml.Unmarshal(b, xrd); err != nil {
		t.Fatal(err)
	}
	v1 := &extv1.JSONSchemaProps{}
	if err := yaml.Unmarshal(xrd.Spec.Versions[0].Schema.OpenAPIV3Schema.Raw, v1); err != nil {
		t.Fatal(err)
	}
	props := &apiextensions.JSONSchemaProps{}
	if err := extv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v1, props, nil); err != nil {
		t.Fatal(err)
	}
	s, err := schema.NewStructural(props)
	if err != nil {
		t.Fatal(err)
	}
	o, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		t.Fatal(err)
	}
	return &checker{structural: s, openapi: o, rules: cel.NewValidator(s, true, celconfig.PerCallLimit)}
}

// check an object that is created, or that takes the place of old.
func (c *checker) check(t *testing.T, obj, old map[string]any) string {
	t.Helper()
	defaulting.Default(obj, c.structural)
	errs := validation.ValidateCustomResource(nil, obj, c.openapi)
	if len(errs) == 0 {
		var before any
		if old != nil {
			defaulting.Default(old, c.structural)
			before = old
		}
		errs, _ = c.rules.Validate(t.Context(), field.NewPath(""), c.structural, obj, before, celconfig.RuntimeCELCostBudget)
	}
	var out []string
	for _, e := range errs {
		out = append(out, e.Error())
	}
	return strings.Join(out, "; ")
}

func parse(t *testing.T, y string) map[string]any {
	t.Helper()
	if y == "" {
		return nil
	}
	out := map[string]any{}
	if err := yaml.Unmarshal([]byte(y), &out); err != nil {
		t.Fatal(err)
	}
	return out
}
