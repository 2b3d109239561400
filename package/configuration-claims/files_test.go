// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/yaml"

	"github.com/tailscale-gateway/tailscale-gateway/internal/golden"
)

// TestFiles checks the digests of the derived files.
func TestFiles(t *testing.T) {
	files, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	golden.CompareSums(t, "files.sha256", files)
}

const xrd = `
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata: {name: things.example.org}
spec:
  defaultCompositionRef: {name: things.example.org}
  group: example.org
  names: {kind: Thing, listKind: ThingList, plural: things, singular: thing, shortNames: [th], categories: [crossplane, tailscale]}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    referenceable: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: string}}}}}}
`

const composition = `
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: things.example.org}
spec:
  compositeTypeRef: {apiVersion: example.org/v1, kind: Thing}
  mode: Pipeline
  pipeline: [{step: make, functionRef: {name: make-thing}}]
`

const claimsXRD = `
apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata: {name: xthings.example.org}
spec:
  claimNames: {kind: Thing, listKind: ThingList, plural: things, singular: thing, shortNames: [th], categories: [crossplane, tailscale]}
  defaultCompositeDeletePolicy: Foreground
  defaultCompositionRef: {name: xthings.example.org}
  group: example.org
  names: {kind: XThing, listKind: XThingList, plural: xthings, singular: xthing, categories: [crossplane]}
  scope: LegacyCluster
  versions:
  - name: v1
    served: true
    referenceable: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: string}}}}}}
`

func TestDerive(t *testing.T) {
	cluster := strings.NewReplacer("Namespaced", "Cluster", "Thing", "Other", "thing", "other")
	type want struct {
		files map[string]string
		err   error
	}
	cases := map[string]struct {
		reason string
		files  map[string]string
		want   want
	}{
		"Claims": {
			reason: "Claims have the names of the kind, composites others, and both its schema; a Composition is for the composites.",
			files:  map[string]string{"xrds/things.yaml": xrd, "compositions/things.yaml": composition},
			want: want{files: map[string]string{
				"xrds/things.yaml":         claimsXRD,
				"compositions/things.yaml": strings.NewReplacer("name: things", "name: xthings", "kind: Thing", "kind: XThing").Replace(composition),
			}},
		},
		"Cluster": {
			reason: "A kind in no namespace has no claims, and the same Composition.",
			files:  map[string]string{"xrds/others.yaml": cluster.Replace(xrd), "compositions/others.yaml": cluster.Replace(composition)},
			want:   want{files: map[string]string{"xrds/others.yaml": cluster.Replace(xrd), "compositions/others.yaml": cluster.Replace(composition)}},
		},
		"Others": {
			reason: "Other files are the same.",
			files:  map[string]string{"activationpolicy.yaml": "kind: Some"},
			want:   want{files: map[string]string{"activationpolicy.yaml": "kind: Some"}},
		},
		"ErrReservedProperty": {
			reason: "Crossplane would take the field for its own.",
			files:  map[string]string{"xrds/things.yaml": strings.ReplaceAll(xrd, "size:", "resourceRef:")},
			want:   want{err: cmpopts.AnyError},
		},
		"ErrNoXRD": {
			reason: "Fields that no definition has are refused.",
			files:  map[string]string{"xrds/things.yaml": "specs: {}"},
			want:   want{err: cmpopts.AnyError},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			files := map[string][]byte{}
			for f, y := range tc.files {
				files[f] = []byte(y)
			}
			derived, err := derive(files)
			if diff := cmp.Diff(tc.want.err, err, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("\n%s\nderive(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			got, want := map[string]any{}, map[string]any{}
			for f, b := range derived {
				got[f] = parse(t, b)
			}
			for f, y := range tc.want.files {
				want[f] = parse(t, []byte(y))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("\n%s\nderive(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func parse(t *testing.T, b []byte) any {
	t.Helper()
	var out any
	if err := yaml.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
