// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestFromOpenAPI(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "openapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	want := &Document{Operations: []Operation{
		{
			Method: "GET", Path: "/boats", Scopes: [][]string{{"boats:read"}, {"crew:read", "boats:read"}},
			Query:    map[string]Value{"kind": "string=sail|row"},
			Produces: []string{"application/json"},
			Reply: map[string]Value{
				"$": "object", "$.boats": "array", "$.boats[]": "object", "$.boats[].id": "string",
				"$.boats[].length": "integer|null/int64", "$.boats[].crew": "object", "$.boats[].crew{}": "boolean|string",
			},
		},
		{
			Method: "PUT", Path: "/boats/{boat}", Scopes: [][]string{{"boats"}},
			PathParameters: map[string]Value{"boat": "string"},
			Headers:        map[string]Value{"If-Match": "string"},
			Consumes:       []string{"application/json", "text/plain"},
			Body: map[string]Value{
				"$": "object", "$.length": "integer|null/int64", "$.key": "string", "$.crew": "object", "$.crew{}": "boolean|string",
			},
		},
	}}
	for range 10 { // Maps have no order.
		got, err := FromOpenAPI(b)
		if err != nil {
			t.Fatalf("FromOpenAPI(...): %v", err)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("FromOpenAPI(...): -want, +got:\n%s", diff)
		}
		text, err := got.Format()
		if err != nil {
			t.Fatalf("Format(): %v", err)
		}
		parsed, err := Parse(text)
		if err != nil {
			t.Fatalf("Parse(...): %v", err)
		}
		if diff := cmp.Diff(got, parsed, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("Parse(Format()): -want, +got:\n%s", diff)
		}
		reformatted, err := parsed.Format()
		if diff := cmp.Diff(string(text), string(reformatted)); err != nil || diff != "" {
			t.Fatalf("Format() again: %v: -want, +got:\n%s", err, diff)
		}
	}
}

func TestFromOpenAPIErrors(t *testing.T) {
	cases := map[string]struct {
		reason   string
		document string
	}{
		"NoYAML":    {reason: "It must be YAML.", document: "\t"},
		"NoPaths":   {reason: "A document without paths is another document.", document: "components: {}"},
		"NoSuchRef": {reason: "A reference to nothing hides facts.", document: `{components: {}, paths: {/a: {get: {parameters: [{$ref: '#/components/parameters/b'}]}}}}`},
		"Endless": {
			reason:   "A schema that holds itself has no end.",
			document: `{components: {schemas: {a: {properties: {a: {$ref: '#/components/schemas/a'}}}}}, paths: {/a: {get: {parameters: [{in: query, name: a, schema: {$ref: '#/components/schemas/a'}}]}}}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if d, err := FromOpenAPI([]byte(tc.document)); err == nil {
				t.Errorf("\n%s\nFromOpenAPI(...): want an error, got %+v", tc.reason, d)
			}
		})
	}
}

func TestValue(t *testing.T) {
	type parts struct {
		Types  []string
		Format string
		Enum   []string
	}
	cases := map[string]struct {
		reason  string
		value   Value
		want    parts
		integer bool
	}{
		"Any":     {reason: "No type is every type.", integer: true},
		"Integer": {reason: "It may be null.", value: "integer|null/int64", want: parts{Types: []string{"integer", "null"}, Format: "int64"}, integer: true},
		"Number":  {reason: "An integer is a number.", value: "number", want: parts{Types: []string{"number"}}, integer: true},
		"Enum":    {reason: "Values may hold slashes.", value: "string=a/b|c", want: parts{Types: []string{"string"}, Enum: []string{"a/b", "c"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := parts{Types: tc.value.Types(), Format: tc.value.Format(), Enum: tc.value.Enum()}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\n%q: -want, +got:\n%s", tc.reason, tc.value, diff)
			}
			if got := tc.value.Has("integer"); got != tc.integer {
				t.Errorf("\n%s\nHas(integer): want %t, got %t", tc.reason, tc.integer, got)
			}
		})
	}
}

func TestTailscale(t *testing.T) {
	d, err := Tailscale()
	if err != nil {
		t.Fatalf("Tailscale(): %v", err)
	}
	b, err := d.Format()
	if err != nil {
		t.Fatalf("Format(): %v", err)
	}
	if diff := cmp.Diff(string(tailscale), string(b)); diff != "" {
		t.Errorf("the facts are not as Format writes them: -want, +got:\n%s", diff)
	}
	cases := map[string]struct {
		reason, method, path, want string
	}{
		"Parameters": {reason: "Any text stands for a parameter.", method: "GET", path: "/tailnet/-/keys/k1", want: "/tailnet/{tailnet}/keys/{keyId}"},
		"Template":   {reason: "So does a parameter of another name.", method: "GET", path: "/tailnet/{t}/keys/{key}", want: "/tailnet/{tailnet}/keys/{keyId}"},
		"Literal":    {reason: "A literal goes before a parameter.", method: "POST", path: "/device-invites/-/accept", want: "/device-invites/-/accept"},
		"Method":     {reason: "A method that is missing is no operation.", method: "PUT", path: "/tailnet/-/devices"},
		"Longer":     {reason: "A parameter is one element.", method: "GET", path: "/tailnet/-/keys/k1/more"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if o := d.Find(tc.method, tc.path); o != nil {
				got = o.Path
			}
			if got != tc.want {
				t.Errorf("\n%s\nFind(...): want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

func TestUndocumented(t *testing.T) {
	described := map[string]Value{
		"$": "object", "$.name": "string", "$.size": "number|null", "$.tags": "array", "$.tags[]": "string",
		"$.labels": "object", "$.labels{}": "string", "$.any": "object",
	}
	cases := map[string]struct {
		reason string
		body   string
		want   []string
	}{
		"All":      {reason: "Described content is fine.", body: `{"name": "a", "size": 1, "tags": ["b"], "labels": {"c": "d"}, "any": {"e": {}}}`},
		"Null":     {reason: "A value may be null where it is said.", body: `{"size": null, "name": null}`, want: []string{"$.name null"}},
		"Type":     {reason: "Types count, each place once.", body: `{"tags": [1, 2, "b"], "labels": {"a": true}}`, want: []string{"$.labels{} boolean", "$.tags[] integer"}},
		"Unknown":  {reason: "The outermost unknown place counts.", body: `{"owner": {"name": "a"}}`, want: []string{"$.owner object"}},
		"TopLevel": {reason: "The body as a whole is a place.", body: `[]`, want: []string{"$ array"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Undocumented(described, []byte(tc.body))
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
				t.Errorf("\n%s\nUndocumented(...): %v: -want, +got:\n%s", tc.reason, err, diff)
			}
		})
	}
	if _, err := Undocumented(described, []byte("nonsense")); err == nil {
		t.Error("Undocumented(...) of no JSON: want an error")
	}
}
