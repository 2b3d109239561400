// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package facts has the facts of Tailscale's OpenAPI document about its API:
// operations, parameters, the names and types of properties, and scopes. The
// document itself is not part of this project, and nothing of its prose is here.
//
// The facts serve tests: they show that the product and the simulator keep to the
// document.
package facts

import (
	_ "embed"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

//go:embed tailscale.yaml
var tailscale []byte

// header of the file that Format writes.
const header = `# Facts of Tailscale's OpenAPI document,
# https://api.tailscale.com/api/v2?outputOpenapiSchema=true.
# Written by hack/apicheck; do not edit.
#
# $ is a body, .NAME a property, [] an item of an array and {} a value of a map. A
# value is a type, such as boolean or string, several types joined by |, with /FORMAT
# and =VALUES where the document has them.
`

// A Document is all of the facts.
type Document struct {
	Operations []Operation `json:"operations"`
}

// An Operation is a method of a path.
type Operation struct {
	Method string `json:"method"`

	// Path is a template below /api/v2, such as /device/{deviceId}.
	Path string `json:"path"`

	// Scopes are sets of OAuth scopes. Each set is for a part of what the
	// operation does, and all scopes of a set are needed.
	Scopes [][]string `json:"scopes,omitempty"`

	// Path, query and header parameters by name.
	PathParameters map[string]Value `json:"pathParameters,omitempty"`
	Query          map[string]Value `json:"query,omitempty"`
	Headers        map[string]Value `json:"headers,omitempty"`

	// Consumes and Produces are media types, sorted.
	Consumes []string `json:"consumes,omitempty"`
	Produces []string `json:"produces,omitempty"`

	// Body and Reply are the contents of JSON bodies, by place. Reply is that of the
	// successful reply.
	Body  map[string]Value `json:"body,omitempty"`
	Reply map[string]Value `json:"reply,omitempty"`
}

// Name returns the method and the path.
func (o *Operation) Name() string { return o.Method + " " + o.Path }

// A Value describes one place in JSON: TYPE|TYPE/FORMAT=VALUE|VALUE.
type Value string

// Types returns JSON types, sorted. No type means that any value may be there.
func (v Value) Types() []string {
	types, _, _ := strings.Cut(string(v), "=")
	types, _, _ = strings.Cut(types, "/")
	if types == "" {
		return nil
	}
	return strings.Split(types, "|")
}

// Has reports whether the value may be of a JSON type. An integer is a number.
func (v Value) Has(jsonType string) bool {
	ts := v.Types()
	return len(ts) == 0 || slices.Contains(ts, jsonType) || jsonType == "integer" && slices.Contains(ts, "number")
}

// Format returns the format, such as date-time, or nothing.
func (v Value) Format() string {
	types, _, _ := strings.Cut(string(v), "=")
	_, format, _ := strings.Cut(types, "/")
	return format
}

// Enum returns the values that are allowed, in the document's order. None means
// all.
func (v Value) Enum() []string {
	_, values, ok := strings.Cut(string(v), "=")
	if !ok {
		return nil
	}
	return strings.Split(values, "|")
}

// Tailscale returns the facts that are kept in this package.
func Tailscale() (*Document, error) { return Parse(tailscale) }

// Parse reads facts as Format writes them.
func Parse(b []byte) (*Document, error) {
	d := &Document{}
	return d, errors.Wrap(yaml.UnmarshalStrict(b, d), "cannot parse facts")
}

// Format writes facts. The same facts are always the same bytes.
func (d *Document) Format() ([]byte, error) {
	b, err := yaml.Marshal(d)
	if err != nil {
		return nil, errors.Wrap(err, "cannot encode facts")
	}
	return append([]byte(header), b...), nil
}

// Find returns the operation of a method and a path below /api/v2, or nil. The path may be a
// template with other parameter names. A literal element of a template takes precedence over a
// parameter.
func (d *Document) Find(method, path string) *Operation {
	var best *Operation
	for i := range d.Operations {
		o := &d.Operations[i]
		if o.Method == method && matches(o.Path, path) && (best == nil || strings.Count(o.Path, "{") < strings.Count(best.Path, "{")) {
			best = o
		}
	}
	return best
}

func matches(template, path string) bool {
	ts, ps := strings.Split(template, "/"), strings.Split(path, "/")
	return slices.EqualFunc(ts, ps, func(t, p string) bool { return t == p || isParameter(t) && p != "" })
}

func isParameter(element string) bool {
	return strings.HasPrefix(element, "{") && strings.HasSuffix(element, "}")
}
