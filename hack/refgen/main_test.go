// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const thing = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: things.example.org
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Thing, listKind: ThingList, plural: things, singular: thing, shortNames: [th]}
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns:
    - {name: SIZE, type: string, jsonPath: .status.atProvider.size, priority: 1}
    schema:
      openAPIV3Schema:
        type: object
        description: A Thing is here. It has a size.
        properties:
          spec:
            type: object
            properties:
              managementPolicies: {type: array, items: {type: string}}
              forProvider:
                type: object
                required: [parts]
                x-kubernetes-validations:
                - {rule: "true", message: parts or sizes}
                properties:
                  parts:
                    type: array
                    maxItems: 3
                    items:
                      type: object
                      properties:
                        size: {type: string, description: "Size a|b.", default: big, enum: [big, small]}
          status:
            type: object
            properties:
              atProvider: {type: object, properties: {size: {type: string, format: date-time}}}
`

const page = generated + `# Thing

A Thing is here. It has a size.

` + "`example.org/v1`, namespaced, `kubectl get things.example.org` or `th`" + `

The [index](README.md#common-fields-of-managed-resources) describes the common fields of managed resources.

## Example

` + "```yaml\nkind: Thing\n```" + `

## spec.forProvider

Rules: parts or sizes.

| field | type | meaning |
|---|---|---|
| ` + "`parts`" + ` | list of object | Required. At most 3 entries. |
| ` + "`parts[].size`" + ` | string | Size a\|b. Default: ` + "`\"big\"`. One of `big`, `small`." + ` |

## status.atProvider

| field | type | meaning |
|---|---|---|
| ` + "`size`" + ` | time |  |

## Columns of kubectl get

| column | shows |
|---|---|
| SIZE | ` + "`.status.atProvider.size`" + ` (with -o wide) |
`

func TestRun(t *testing.T) {
	crds, examples, out := t.TempDir(), t.TempDir(), t.TempDir()
	for path, content := range map[string]string{
		filepath.Join(crds, "things.yaml"):    thing,
		filepath.Join(examples, "thing.yaml"): "# Copyright\n# SPDX\nkind: Thing\n",
		filepath.Join(out, "gone.md"):         "",
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := (&cli{CRDs: []string{crds}, Examples: examples, Out: out}).run(); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(out, "thing.md"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(page, string(got)); diff != "" {
		t.Errorf("-want page, +got page:\n%s", diff)
	}
	names, err := filepath.Glob(filepath.Join(out, "*"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(out, "README.md"), filepath.Join(out, "thing.md")}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("-want files, +got files:\n%s", diff)
	}
}
