// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

const (
	mediaJSON = "application/json"

	// maxDepth of schemas. A deeper one refers to itself.
	maxDepth = 32
)

var (
	// The document names scopes in prose: one sentence for each set of them, which
	// begins with the set.
	scopeSentence = regexp.MustCompile("OAuth Scope: ((?:`[a-z_:]+`(?:, )?)+)")
	scopeName     = regexp.MustCompile("[a-z_:]+")
)

// FromOpenAPI takes the facts from an OpenAPI document in YAML or JSON. An
// allOf, anyOf or oneOf counts as all of its schemas together.
func FromOpenAPI(document []byte) (*Document, error) {
	b, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, errors.Wrap(err, "cannot read YAML")
	}
	r := &reader{doc: &spec3.OpenAPI{}}
	if err := r.doc.UnmarshalJSON(b); err != nil {
		return nil, errors.Wrap(err, "cannot decode OpenAPI document")
	}
	if r.doc.Paths == nil || r.doc.Components == nil {
		return nil, errors.New("the document has no paths or no components")
	}
	d := &Document{}
	for path, item := range r.doc.Paths.Paths {
		for method, op := range map[string]*spec3.Operation{
			http.MethodGet: item.Get, http.MethodPut: item.Put, http.MethodPost: item.Post,
			http.MethodPatch: item.Patch, http.MethodDelete: item.Delete,
		} {
			if op == nil {
				continue
			}
			o, err := r.operation(method, path, item.Parameters, op)
			if err != nil {
				return nil, errors.Wrapf(err, "cannot read %s %s", method, path)
			}
			d.Operations = append(d.Operations, *o)
		}
	}
	slices.SortFunc(d.Operations, func(a, b Operation) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method))
	})
	return d, nil
}

// A reader follows the references of a document.
type reader struct{ doc *spec3.OpenAPI }

func (r *reader) operation(method, path string, shared []*spec3.Parameter, op *spec3.Operation) (*Operation, error) {
	o := &Operation{Method: method, Path: path, Scopes: scopes(op.Description)}
	for _, p := range slices.Concat(shared, op.Parameters) {
		if err := r.parameter(o, p); err != nil {
			return nil, err
		}
	}
	if op.RequestBody != nil {
		var err error
		if o.Consumes, o.Body, err = r.content(op.RequestBody.Content, isReadOnly); err != nil {
			return nil, err
		}
	}
	if op.Responses == nil {
		return o, nil
	}
	for _, status := range slices.Sorted(maps.Keys(op.Responses.StatusCodeResponses)) {
		if status < http.StatusOK || status >= http.StatusMultipleChoices {
			continue
		}
		var err error
		o.Produces, o.Reply, err = r.content(op.Responses.StatusCodeResponses[status].Content, isWriteOnly)
		return o, err
	}
	return o, nil
}

// parameter adds a parameter to an operation. The scope of one operation is in a
// parameter's description.
func (r *reader) parameter(o *Operation, p *spec3.Parameter) error {
	if ref := p.Ref.String(); ref != "" {
		target := r.doc.Components.Parameters[strings.TrimPrefix(ref, "#/components/parameters/")]
		if target == nil {
			return errors.Errorf("cannot follow %q", ref)
		}
		p = target
	}
	o.Scopes = append(o.Scopes, scopes(p.Description)...)
	at := map[string]Value{}
	all := walker{reader: r, values: at, excluded: func(*spec.Schema) bool { return false }}
	if err := all.walk("$", p.Schema, 0); err != nil {
		return err
	}
	add := func(dst *map[string]Value) {
		if *dst == nil {
			*dst = map[string]Value{}
		}
		(*dst)[p.Name] = at["$"]
	}
	switch p.In {
	case "path":
		add(&o.PathParameters)
	case "query":
		add(&o.Query)
	case "header":
		add(&o.Headers)
	}
	return nil
}

// content returns media types and the content of JSON bodies.
func (r *reader) content(content map[string]*spec3.MediaType, excluded func(*spec.Schema) bool) ([]string, map[string]Value, error) {
	w := walker{reader: r, values: map[string]Value{}, excluded: excluded}
	if m := content[mediaJSON]; m != nil {
		if err := w.walk("$", m.Schema, 0); err != nil {
			return nil, nil, err
		}
	}
	return slices.Sorted(maps.Keys(content)), w.values, nil
}

// isReadOnly reports whether a schema is of replies only.
func isReadOnly(s *spec.Schema) bool { return s.ReadOnly }

// isWriteOnly reports whether a schema is of request bodies only.
func isWriteOnly(s *spec.Schema) bool { return s.ExtraProps["writeOnly"] == true }

// A walker notes the content of schemas.
type walker struct {
	reader *reader
	values map[string]Value

	// excluded reports whether a schema is left out.
	excluded func(*spec.Schema) bool
}

// walk notes the content of a schema at a place, and below.
func (w walker) walk(location string, s *spec.Schema, depth int) error {
	if s == nil || w.excluded(s) {
		return nil
	}
	if depth > maxDepth {
		return errors.Errorf("%s refers to itself", location)
	}
	if ref := s.Ref.String(); ref != "" {
		target := w.reader.doc.Components.Schemas[strings.TrimPrefix(ref, "#/components/schemas/")]
		if target == nil {
			return errors.Errorf("cannot follow %q", ref)
		}
		return w.walk(location, target, depth+1)
	}
	v := Value(strings.Join(slices.Sorted(slices.Values(s.Type)), "|"))
	if s.Format != "" {
		v += Value("/" + s.Format)
	}
	if len(s.Enum) > 0 {
		v += Value("=" + strings.Join(texts(s.Enum), "|"))
	}
	w.values[location] = joined(w.values[location], v)
	for _, alternatives := range [][]spec.Schema{s.AllOf, s.AnyOf, s.OneOf} {
		for i := range alternatives {
			if err := w.walk(location, &alternatives[i], depth+1); err != nil {
				return err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		if err := w.walk(location+"."+name, &p, depth+1); err != nil {
			return err
		}
	}
	if s.AdditionalProperties != nil {
		if err := w.walk(location+"{}", s.AdditionalProperties.Schema, depth+1); err != nil {
			return err
		}
	}
	if s.Items != nil {
		return w.walk(location+"[]", s.Items.Schema, depth+1)
	}
	return nil
}

// joined returns the value of a place that two schemas describe.
func joined(a, b Value) Value {
	if a == "" || a == b {
		return b
	}
	if b == "" {
		return a
	}
	types := slices.Compact(slices.Sorted(slices.Values(slices.Concat(a.Types(), b.Types()))))
	return Value(strings.Join(types, "|"))
}

func texts(values []any) []string {
	out := make([]string, 0, len(values))
	for _, v := range values {
		out = append(out, fmt.Sprint(v))
	}
	return out
}

func scopes(description string) [][]string {
	var out [][]string
	for _, m := range scopeSentence.FindAllStringSubmatch(description, -1) {
		out = append(out, scopeName.FindAllString(m[1], -1))
	}
	return out
}
