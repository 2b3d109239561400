// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
)

// allKinds is the heading of the rows about every kind.
const allKinds = "All kinds"

// omittedField matches the name of a field in the first cell of a row.
var omittedField = regexp.MustCompile("`([A-Za-z][A-Za-z0-9.\\[\\]]*)`")

// segments returns the names of a path, without the marks of lists.
func segments(path string) []string {
	return strings.Split(strings.ReplaceAll(path, "[]", ""), ".")
}

// omitted returns the fields in the first cells of a page's rows, by the heading above.
func omitted(page string) map[string][][]string {
	out := map[string][][]string{}
	section := ""
	for line := range strings.Lines(page) {
		if m := heading.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			section = m[1]
		}
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		for _, m := range omittedField.FindAllStringSubmatch(cells[1], -1) {
			out[section] = append(out[section], segments(m[1]))
		}
	}
	return out
}

// covers reports whether a row names the field of a path, or a field above it.
func covers(row, path []string) bool {
	for i := range path {
		if len(path)-i >= len(row) && slices.Equal(row, path[i:i+len(row)]) {
			return true
		}
	}
	return false
}

// hasField reports whether a schema has the field of a path.
func hasField(s *extv1.JSONSchemaProps, path []string) bool {
	if len(path) == 0 {
		return true
	}
	if s.Items != nil {
		return hasField(s.Items.Schema, path)
	}
	p, ok := s.Properties[path[0]]
	return ok && hasField(&p, path[1:])
}

// undocumented returns the fields, each with its kind, that no schema has and no row omits.
func undocumented(schemas map[string]*extv1.JSONSchemaProps, rows map[string][][]string, fields []string) []string {
	var out []string
	for _, f := range fields {
		kind, path, _ := strings.Cut(f, " ")
		names := segments(path)
		s := schemas[kind]
		row := func(r []string) bool { return covers(r, names) }
		if s != nil && hasField(s, names) || slices.ContainsFunc(rows[kind], row) || slices.ContainsFunc(rows[allKinds], row) {
			continue
		}
		out = append(out, f)
	}
	return out
}

// TestDropped verifies that each field of earlier designs exists, or is on the page of omitted fields.
func TestDropped(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "dropped.md"))
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile(filepath.Join("testdata", "design-fields.txt"))
	if err != nil {
		t.Fatal(err)
	}
	schemas := map[string]*extv1.JSONSchemaProps{}
	for _, crd := range definitions(t) {
		if crd.Spec.Group == gatewayv1alpha1.Group {
			schemas[crd.Spec.Names.Kind] = crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		}
	}
	fields := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(list)), "\n"), func(l string) bool { return strings.HasPrefix(l, "#") })
	rows := omitted(string(page))
	for _, f := range undocumented(schemas, rows, fields) {
		t.Errorf("%s: neither a field nor omitted in docs/dropped.md; add a row with what to use instead, and why", f)
	}
	for _, r := range slices.Concat(rows["TailscaleTailnet"], rows["TailscaleEndpoints"], rows["TailscaleServices"], rows["TailscaleGateway"], rows["TailscaleRoutePolicy"], rows[allKinds]) {
		if slices.Equal(r, []string{"spec"}) || slices.Equal(r, []string{"status"}) {
			t.Errorf("docs/dropped.md omits %s, and thereby each field", strings.Join(r, "."))
		}
	}
}

func TestUndocumented(t *testing.T) {
	text := extv1.JSONSchemaProps{Type: "string"}
	port := extv1.JSONSchemaProps{Properties: map[string]extv1.JSONSchemaProps{"number": text}}
	schemas := map[string]*extv1.JSONSchemaProps{"A": {Properties: map[string]extv1.JSONSchemaProps{
		"spec": {Properties: map[string]extv1.JSONSchemaProps{"name": text, "ports": {Items: &extv1.JSONSchemaPropsOrArray{Schema: &port}}}},
	}}}
	rows := omitted("## A\n\n| omitted | instead |\n|---|---|\n| `spec.old`, `ports[].label` | `spec.name` |\n\n## All kinds\n\n| `lastError` | conditions |\n")
	cases := map[string]struct {
		reason string
		field  string
		want   []string
	}{
		"Exists":        {reason: "A field of the schema needs no row.", field: "A spec.name"},
		"ExistsInItems": {reason: "A field of a list's items is below them.", field: "A spec.ports[].number"},
		"Row":           {reason: "A row names the field.", field: "A spec.old"},
		"Below":         {reason: "A row omits the fields below, too.", field: "A spec.old.more"},
		"RowEndsPath":   {reason: "A row need not begin with spec.", field: "A spec.ports[].label"},
		"AllKinds":      {reason: "The rows of all kinds count for each.", field: "B status.x[].lastError.code"},
		"Replacement":   {reason: "The second cell omits nothing.", field: "B spec.name", want: []string{"B spec.name"}},
		"OtherKind":     {reason: "A row counts for its kind alone.", field: "B spec.old", want: []string{"B spec.old"}},
		"PartOfName":    {reason: "A row names whole fields.", field: "A spec.older", want: []string{"A spec.older"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, undocumented(schemas, rows, []string{tc.field})); diff != "" {
				t.Errorf("\n%s\nundocumented(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
