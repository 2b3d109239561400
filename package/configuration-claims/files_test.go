// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/yaml"

	apiextv2 "github.com/crossplane/crossplane/apis/v2/apiextensions/v2"

	"github.com/tailscale-gateway/tailscale-gateway/internal/golden"
	"github.com/tailscale-gateway/tailscale-gateway/package/configuration"
)

// TestFiles checks the digests of the derived files.
func TestFiles(t *testing.T) {
	files, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "files.sha256", golden.Sums(files), nil)
}

const xrd = `apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata:
  name: things.example.org
spec:
  defaultCompositionRef:
    name: things.example.org
  group: example.org
  names:
    categories:
    - crossplane
    - tailscale
    kind: Thing
    listKind: ThingList
    plural: things
    shortNames:
    - th
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
        required:
        - spec
        type: object
    served: true
`

const claimsXRD = `apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata:
  name: xthings.example.org
spec:
  claimNames:
    categories:
    - crossplane
    - tailscale
    kind: Thing
    listKind: ThingList
    plural: things
    shortNames:
    - th
    singular: thing
  defaultCompositeDeletePolicy: Foreground
  defaultCompositionRef:
    name: xthings.example.org
  group: example.org
  names:
    categories:
    - crossplane
    kind: XThing
    listKind: XThingList
    plural: xthings
    singular: xthing
  scope: LegacyCluster
  versions:
`

func TestConvert(t *testing.T) {
	_, versions, _ := strings.Cut(xrd, "  versions:\n")

	type want struct {
		out string
		err error
	}
	cases := map[string]struct {
		reason string
		input  string
		want   want
	}{
		"Claims": {
			reason: "Claims have the names of the kind, composites others, and both its columns and schema.",
			input:  xrd,
			want:   want{out: claimsXRD + versions},
		},
		"ErrReservedProperty": {
			reason: "Crossplane would take the field for its own.",
			input:  strings.ReplaceAll(xrd, "size:", "resourceRef:"),
			want:   want{err: cmpopts.AnyError},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			namespaced := &apiextv2.CompositeResourceDefinition{}
			if err := yaml.UnmarshalStrict([]byte(tc.input), namespaced); err != nil {
				t.Fatal(err)
			}
			xrd, err := convert(namespaced)
			if diff := cmp.Diff(tc.want.err, err, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("%s\nconvert(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			if err != nil {
				return
			}
			got, err := configuration.Encode(xrd)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want.out, string(got)); diff != "" {
				t.Errorf("%s\nconvert(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestConvertComposition(t *testing.T) {
	composition := func(name, kind string) string {
		return `apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata:
  name: ` + name + `.example.org
spec:
  compositeTypeRef:
    apiVersion: example.org/v1
    kind: ` + kind + `
  mode: Pipeline
  pipeline:
  - functionRef:
      name: make-thing
    step: make
`
	}
	cases := map[string]struct {
		reason string
		input  string
		want   string
	}{
		"Claimed": {
			reason: "A Composition is for the composites of claims.",
			input:  composition("things", "Thing"),
			want:   composition("xthings", "XThing"),
		},
		"NotClaimed": {
			reason: "A kind without claims has the same Composition.",
			input:  composition("others", "Other"),
			want:   composition("others", "Other"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := convertComposition([]byte(tc.input), map[string]bool{"Thing": true})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("%s\nconvertComposition(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
