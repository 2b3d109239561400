// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
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
                      x-kubernetes-validations:
                      - {rule: "true", message: a part has a size}
                      - {rule: "true", message: a | b}
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

` + "```yaml\napiVersion: example.org/v1\nkind: Thing\n```" + `

Other examples:

- [more/things.yaml](EXAMPLES/more/things.yaml)

## spec.forProvider

Rules:

- parts or sizes

<dl markdown="1">
<dt><a id="spec.forProvider.parts" href="#spec.forProvider.parts"><code>parts</code></a> list of object, required</dt>
<dd markdown="block">

At most 3 entries.

Rules:

- a part has a size
- a | b

<details markdown="1">
<summary>Fields of <code>spec.forProvider.parts[]</code></summary>
<dl markdown="1">
<dt><a id="spec.forProvider.parts.size" href="#spec.forProvider.parts.size"><code>size</code></a> string</dt>
<dd markdown="block">

Size a|b. Default: ` + "`\"big\"`. One of `big`, `small`." + `

</dd>
</dl>
</details>

</dd>
</dl>

## status.atProvider

<dl markdown="1">
<dt><a id="status.atProvider.size" href="#status.atProvider.size"><code>size</code></a> time</dt>
<dd markdown="block">

</dd>
</dl>

## Columns of kubectl get

| column | shows |
|---|---|
| SIZE | ` + "`.status.atProvider.size`" + ` (with -o wide) |
`

func TestRun(t *testing.T) {
	crds, examples, out := t.TempDir(), t.TempDir(), t.TempDir()
	managed := filepath.Join(examples, "managed")
	for path, content := range map[string]string{
		filepath.Join(crds, "things.yaml"):             thing,
		filepath.Join(managed, "thing.yaml"):           "# Copyright\n# SPDX\napiVersion: example.org/v1\nkind: Thing\n",
		filepath.Join(examples, "more", "things.yaml"): "apiVersion: v1\nkind: Secret\n---\napiVersion: example.org/v1\nkind: Thing\n",
		filepath.Join(examples, "other.yaml"):          "apiVersion: example.com/v1\nkind: Thing\n",
		filepath.Join(out, "gone.md"):                  "",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := (&cli{CRDs: []string{crds}, Examples: examples, Managed: managed, Out: out}).run(); err != nil {
		t.Fatal(err)
	}
	folder, err := filepath.Rel(out, examples)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(out, "thing.md"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.ReplaceAll(page, "EXAMPLES", folder), string(got)); diff != "" {
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
