// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/tailscale-gateway/tailscale-gateway/internal/golden"
)

// TestFiles checks the digests of the complete definitions.
func TestFiles(t *testing.T) {
	files, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	golden.CompareSums(t, "files.sha256", files)
}

func TestComplete(t *testing.T) {
	const definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: thinginputs.fn.example.org}
spec:
  group: fn.example.org
  scope: Namespaced
  names: {kind: ThingInput, listKind: ThingInputList, plural: thinginputs, singular: thinginput}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          name: {type: string}
          spec: {x-kubernetes-preserve-unknown-fields: true}
`
	rules := func(messages ...string) extv1.ValidationRules {
		var out extv1.ValidationRules
		for _, m := range messages {
			out = append(out, extv1.ValidationRule{Rule: "true", Message: m})
		}
		return out
	}
	spec := func(messages ...string) extv1.JSONSchemaProps {
		return extv1.JSONSchemaProps{Type: "object", Properties: map[string]extv1.JSONSchemaProps{
			"backends": {Type: "array", Items: &extv1.JSONSchemaPropsOrArray{Schema: &extv1.JSONSchemaProps{Type: "object", XValidations: rules(messages...)}}},
		}}
	}
	cases := map[string]struct {
		reason string
		specs  map[string]extv1.JSONSchemaProps
		want   map[string]extv1.JSONSchemaProps
		err    bool
	}{
		"Rule": {
			reason: "An input has the spec of its kind, without the rule that Crossplane's command line cannot evaluate.",
			specs:  map[string]extv1.JSONSchemaProps{"Thing": spec(portRule, "other")},
			want:   map[string]extv1.JSONSchemaProps{"name": {Type: "string"}, "spec": spec("other")},
		},
		"ErrNoComposite": {
			reason: "An input of a kind that no configuration has is a mistake.",
			err:    true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			crd, err := complete([]byte(definition), tc.specs)
			if (err != nil) != tc.err {
				t.Fatalf("\n%s\ncomplete(...): %v", tc.reason, err)
			}
			if err != nil {
				return
			}
			got := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties
			s := got["spec"]
			s.Description = ""
			got["spec"] = s
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\ncomplete(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPortRule checks that a schema has the rule that inputs must not have: with another text it would stay.
func TestPortRule(t *testing.T) {
	all, err := specs()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all["TailscaleServices"].Properties["backends"].Items.Schema.XValidations {
		if r.Message == portRule {
			return
		}
	}
	t.Errorf("no rule of backends has the message %q: correct portRule", portRule)
}
