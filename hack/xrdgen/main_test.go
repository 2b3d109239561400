// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: things.example.org
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Thing, listKind: ThingList, plural: things, singular: thing}
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns:
    - {name: SIZE, type: string, jsonPath: .spec.size}
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        x-kubernetes-validations:
        - {rule: "true", message: always}
        properties:
          apiVersion: {type: string}
          kind: {type: string}
          metadata: {type: object}
          spec: {type: object, properties: {size: {type: string}}}
          status: {type: object, properties: {conditions: {type: array, items: {type: string}}, seen: {type: string}}}
`

const xrd = header + `apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata:
  labels:
    app.kubernetes.io/part-of: tailscale-gateway
  name: things.example.org
spec:
  defaultCompositionRef:
    name: things.example.org
  group: example.org
  names:
    kind: Thing
    listKind: ThingList
    plural: things
    singular: thing
  scope: Namespaced
  versions:
  - additionalPrinterColumns:
    - jsonPath: .spec.size
      name: SIZE
      type: string
    name: v1
    referenceable: true
    schema:
      openAPIV3Schema:
        properties:
          spec:
            properties:
              size:
                type: string
            type: object
          status:
            properties:
              seen:
                type: string
            type: object
        required:
        - spec
        type: object
        x-kubernetes-validations:
        - message: always
          rule: "true"
    served: true
`

func TestConvert(t *testing.T) {
	type want struct {
		out string
		err error
	}
	cases := map[string]struct {
		reason string
		input  string
		want   want
	}{
		"Namespaced": {
			reason: "Names, columns, schema and rules are kept; what Crossplane adds is dropped.",
			input:  crd,
			want:   want{out: xrd},
		},
		"Cluster": {
			reason: "The scope follows.",
			input:  strings.Replace(crd, "scope: Namespaced", "scope: Cluster", 1),
			want:   want{out: strings.Replace(xrd, "scope: Namespaced", "scope: Cluster", 1)},
		},
		"Scale": {
			reason: "The scale subresource is kept; status is Crossplane's to add.",
			input:  strings.Replace(crd, "    schema:\n", "    subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.seen}}\n    schema:\n", 1),
			want:   want{out: xrd + "    subresources:\n      scale:\n        specReplicasPath: .spec.size\n        statusReplicasPath: .status.seen\n"},
		},
		"ErrNoSpec": {
			reason: "A composite without a spec is useless.",
			input:  strings.Replace(crd, "          spec: {type: object, properties: {size: {type: string}}}\n", "", 1),
			want:   want{err: cmpopts.AnyError},
		},
		"ErrReservedProperty": {
			reason: "Crossplane keeps its own fields in spec.crossplane.",
			input:  strings.Replace(crd, "{size: {type: string}}", "{crossplane: {type: string}}", 1),
			want:   want{err: cmpopts.AnyError},
		},
		"ErrNotCRD": {
			reason: "Fields that no CustomResourceDefinition has are refused.",
			input:  "specs: {}",
			want:   want{err: cmpopts.AnyError},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			xrd, err := convert([]byte(tc.input))
			if diff := cmp.Diff(tc.want.err, err, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("%s\nconvert(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			if err != nil {
				return
			}
			got, err := encode(xrd)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want.out, string(got)); diff != "" {
				t.Errorf("%s\nconvert(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
