// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
)

const (
	values = `# Copyright 2026
# SPDX-License-Identifier: Apache-2.0

# How many pods
# run: docs/proxies.md.
replicas: 2

# Image of the pods.
image:
  # Registry and path, a|b.
  repository: example.org/thing
  # When to pull.
  pullPolicy: Always
  # A part of the image.
  digests:
    # One digest.
    agent: ""
# Labels of the pods.
labels: {}
`

	schema = `{
  "type": "object",
  "additionalProperties": false,
  "definitions": {"strings": {"type": "object", "additionalProperties": {"type": "string"}}},
  "properties": {
    "replicas": {"type": "integer", "minimum": 1},
    "image": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "repository": {"type": "string", "description": "Without a scheme."},
        "pullPolicy": {"enum": ["Always", "Never"]},
        "digests": {"type": "object", "properties": {"agent": {"type": "string"}}}
      }
    },
    "labels": {"$ref": "#/definitions/strings"},
    "enabled": {"type": "boolean", "description": "Whether another chart installs it."}
  }
}`

	valuesPage = generated + `# Values of thing

A thing.

Helm's options ` + "`--set` and `--values`" + ` set them. A value that is not here is refused.

<dl markdown="1">
<dt><a id="replicas" href="#replicas"><code>replicas</code></a> integer</dt>
<dd markdown="block">

How many pods run: [docs/proxies.md](../proxies.md). At least 1. Default: ` + "`2`" + `.

</dd>
<dt><a id="labels" href="#labels"><code>labels</code></a> map of string</dt>
<dd markdown="block">

Labels of the pods. Default: ` + "`{}`" + `.

</dd>
<dt><a id="enabled" href="#enabled"><code>enabled</code></a> boolean</dt>
<dd markdown="block">

Whether another chart installs it.

</dd>
</dl>

## image

Image of the pods.

<dl markdown="1">
<dt><a id="image.repository" href="#image.repository"><code>image.repository</code></a> string</dt>
<dd markdown="block">

Registry and path, a|b. Without a scheme. Default: ` + "`\"example.org/thing\"`" + `.

</dd>
<dt><a id="image.pullPolicy" href="#image.pullPolicy"><code>image.pullPolicy</code></a> string</dt>
<dd markdown="block">

When to pull. One of ` + "`Always`" + `, ` + "`Never`" + `. Default: ` + "`\"Always\"`" + `.

</dd>
<dt><a id="image.digests" href="#image.digests"><code>image.digests</code></a> object</dt>
<dd markdown="block">

A part of the image.

</dd>
<dt><a id="image.digests.agent" href="#image.digests.agent"><code>image.digests.agent</code></a> string</dt>
<dd markdown="block">

One digest. Default: ` + "`\"\"`" + `.

</dd>
</dl>
`
)

func writeChart(t *testing.T, values, schema string) string {
	t.Helper()
	dir := t.TempDir()
	for file, content := range map[string]string{
		"Chart.yaml":         "name: thing\ndescription: A thing.\n",
		"values.yaml":        values,
		"values.schema.json": schema,
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func pageOf(dir string) (string, error) {
	c, err := readChart(dir)
	if err != nil {
		return "", err
	}
	b, err := c.page()
	return string(b), err
}

func TestValuesPage(t *testing.T) {
	got, err := pageOf(writeChart(t, values, schema))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(valuesPage, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestValuesRefused checks that each value has a comment and a schema.
func TestValuesRefused(t *testing.T) {
	cases := map[string]struct {
		reason         string
		values, schema string
		want           string
	}{
		"NoComment":    {reason: "A value needs a comment.", values: strings.Replace(values, "  # When to pull.\n", "", 1), schema: schema, want: "image.pullPolicy has no comment"},
		"NoneOfObject": {reason: "So does an object that has values.", values: strings.Replace(values, "# Image of the pods.\n", "", 1), schema: schema, want: "image has no comment"},
		"NoSchema":     {reason: "Helm must check each value.", values: values + "\n# More.\nmore: 1\n", schema: schema, want: "values.schema.json has no more"},
		"NoDefinition": {reason: "A reference must lead somewhere.", values: values, schema: strings.Replace(schema, `"#/definitions/strings"`, `"#/definitions/texts"`, 1), want: "no definition of labels"},
		"NoValue":      {reason: "A value without a default needs a description.", values: values, schema: strings.Replace(schema, `, "description": "Whether another chart installs it."`, "", 1), want: "enabled is neither in values.yaml"},
		"Licence":      {reason: "The licence is no comment of the first value.", values: strings.Replace(values, "# How many pods\n# run: docs/proxies.md.\n", "", 1), schema: schema, want: "replicas has no comment"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := pageOf(writeChart(t, tc.values, tc.schema)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: want an error with %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

// TestValuesPages checks that the committed pages are those of the charts.
func TestValuesPages(t *testing.T) {
	root := filepath.Join("..", "..")
	for _, name := range []string{charts.Install, charts.Extension} {
		want, err := pageOf(filepath.Join(root, charts.Folder, name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(root, "docs", "reference", "values-"+name+".md"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("run make generate: -want page, +got page:\n%s", diff)
		}
	}
}
