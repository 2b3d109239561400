// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/cel"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/package/function/input"
)

// An InputSchema is the schema of a function's input. The API server does not validate inputs in a
// Composition, so the function applies defaults, the schema and rules as the API server does for an
// object. It is safe for concurrent use.
type InputSchema struct {
	// load is slow, and a function in a Composition of the product has no input.
	load func() (*loadedSchema, error)
}

// NewInputSchema returns the schema of the inputs for a kind, such as TailscaleServices.
func NewInputSchema(kind string) *InputSchema {
	return &InputSchema{load: sync.OnceValues(func() (*loadedSchema, error) {
		s, err := loadSchema(kind)
		return s, errors.Wrap(err, "cannot load the schema of inputs")
	})}
}

type loadedSchema struct {
	apiVersion string
	kind       string
	structural *schema.Structural
	openAPI    validation.SchemaValidator

	// rules returns the errors of the schema's rules for an input.
	rules func(input map[string]any) field.ErrorList
}

func loadSchema(kind string) (*loadedSchema, error) {
	crd, err := input.Definition(kind)
	if err != nil {
		return nil, err
	}
	if len(crd.Spec.Versions) != 1 {
		return nil, errors.Errorf("want one version, got %d", len(crd.Spec.Versions))
	}
	v := crd.Spec.Versions[0]
	internal := &apiextensions.JSONSchemaProps{}
	if err := extv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, internal, nil); err != nil {
		return nil, errors.Wrap(err, "cannot convert the schema")
	}
	s := &loadedSchema{apiVersion: crd.Spec.Group + "/" + v.Name, kind: crd.Spec.Names.Kind}
	if s.structural, err = schema.NewStructural(internal); err != nil {
		return nil, errors.Wrap(err, "the schema is not structural")
	}
	if s.openAPI, _, err = validation.NewSchemaValidator(internal); err != nil {
		return nil, errors.Wrap(err, "cannot make a validator")
	}
	rules := schemacel.NewValidator(s.structural, true, cel.PerCallLimit)
	s.rules = func(input map[string]any) field.ErrorList {
		// Rules send no requests, so there is nothing to cancel. A schema without rules has a nil
		// validator, which returns no errors.
		errs, _ := rules.Validate(context.Background(), nil, s.structural, input, nil, cel.RuntimeCELCostBudget)
		return errs
	}
	return s, nil
}

// check sets defaults and returns an error for an invalid input. A field that the schema lacks is
// an error and not dropped: it is most likely misspelled, and no other component would report it.
func (s *loadedSchema) check(input map[string]any) error {
	if input["apiVersion"] != s.apiVersion || input["kind"] != s.kind {
		return errors.Errorf("want apiVersion %s and kind %s, got %v and %v", s.apiVersion, s.kind, input["apiVersion"], input["kind"])
	}
	var problems []string
	for _, f := range pruning.PruneWithOptions(input, s.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}) {
		problems = append(problems, f+": Unknown field")
	}
	defaulting.Default(input, s.structural)
	errs := validation.ValidateCustomResource(nil, input, s.openAPI)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, input)...)
	// Rules expect an input that is valid according to the schema.
	if len(errs) == 0 {
		errs = s.rules(input)
	}
	for _, e := range errs {
		problems = append(problems, message(e))
	}
	if len(problems) == 0 {
		return nil
	}
	slices.Sort(problems)
	problems = slices.Compact(problems)
	if n := len(problems) - listLimit; n > 0 {
		problems = append(problems[:listLimit], fmt.Sprintf("and %d more", n))
	}
	return errors.New(strings.Join(problems, "; "))
}

// message returns the message of an error on one line.
func message(e *field.Error) string {
	return strings.Join(strings.Fields(e.Error()), " ")
}
