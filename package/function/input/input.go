// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package input has the definitions of the inputs that steps of a pipeline may have. The files beside it lack
// the schema of spec, which is that of the kind's composite, and the folder has the digests of the complete
// files, so that a review shows a change.
package input

import (
	"embed"
	"encoding/json"
	"io/fs"
	"path"
	"slices"
	"strings"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	apiextv2 "github.com/crossplane/crossplane/apis/v2/apiextensions/v2"

	"github.com/tailscale-gateway/tailscale-gateway/package/configuration"
)

//go:embed *.yaml
var incomplete embed.FS

// suffix ends the kinds of inputs.
const suffix = "Input"

// portRule is the message of the validation of backends that reads a port. "crossplane resource validate"
// decodes the numbers of inputs as floats, and CEL rejects a float where the schema says
// integer: the rule would fail for every input. The functions check it themselves.
const portRule = "port is required unless kind is TailscaleGateway"

// Files returns the CustomResourceDefinitions of all inputs, by file.
func Files() (map[string][]byte, error) {
	files, err := fs.Glob(incomplete, "*.yaml")
	if err != nil {
		return nil, errors.Wrap(err, "cannot list inputs")
	}
	all, err := specs()
	if err != nil {
		return nil, err
	}
	out := make(map[string][]byte, len(files))
	for _, f := range files {
		b, err := fs.ReadFile(incomplete, f)
		if err != nil {
			return nil, errors.Wrapf(err, "cannot read %s", f)
		}
		crd, err := complete(b, all)
		if err != nil {
			return nil, errors.Wrapf(err, "cannot complete %s", f)
		}
		if out[f], err = configuration.Encode(crd); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Definition returns the CustomResourceDefinition of the input for a kind, such as TailscaleServices.
func Definition(kind string) (*extv1.CustomResourceDefinition, error) {
	b, err := fs.ReadFile(incomplete, "fn.gateway.tailscale.com_"+strings.ToLower(kind+suffix)+"s.yaml")
	if err != nil {
		return nil, errors.Wrapf(err, "cannot read the input of %s", kind)
	}
	all, err := specs()
	if err != nil {
		return nil, err
	}
	return complete(b, all)
}

// specs returns the schemas of the specs of composites, by kind.
func specs() (map[string]extv1.JSONSchemaProps, error) {
	files, err := configuration.Files()
	if err != nil {
		return nil, err
	}
	out := map[string]extv1.JSONSchemaProps{}
	for f, b := range files {
		if path.Dir(f) != "xrds" {
			continue
		}
		xrd := &apiextv2.CompositeResourceDefinition{}
		if err := yaml.UnmarshalStrict(b, xrd); err != nil {
			return nil, errors.Wrapf(err, "cannot parse %s", f)
		}
		schema := extv1.JSONSchemaProps{}
		if err := json.Unmarshal(xrd.Spec.Versions[0].Schema.OpenAPIV3Schema.Raw, &schema); err != nil {
			return nil, errors.Wrapf(err, "cannot decode the schema of %s", f)
		}
		out[xrd.Spec.Names.Kind] = schema.Properties["spec"]
	}
	return out, nil
}

// complete returns the definition of an input with the schema of its spec.
func complete(definition []byte, specs map[string]extv1.JSONSchemaProps) (*extv1.CustomResourceDefinition, error) {
	crd := &extv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(definition, crd); err != nil {
		return nil, errors.Wrap(err, "cannot parse")
	}
	kind := strings.TrimSuffix(crd.Spec.Names.Kind, suffix)
	spec, ok := specs[kind]
	if !ok {
		return nil, errors.Errorf("no composite has kind %s", kind)
	}
	spec = *spec.DeepCopy()
	spec.Description = "Spec is the spec of a " + kind + "."
	dropRule(&spec, portRule)
	crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = spec
	return crd, nil
}

// dropRule removes the validations with a message from a schema.
func dropRule(s *extv1.JSONSchemaProps, message string) {
	s.XValidations = slices.DeleteFunc(s.XValidations, func(r extv1.ValidationRule) bool { return r.Message == message })
	for name, p := range s.Properties {
		dropRule(&p, message)
		s.Properties[name] = p
	}
	if s.Items != nil && s.Items.Schema != nil {
		dropRule(s.Items.Schema, message)
	}
}
