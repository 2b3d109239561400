// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// Fields are the fields of a JSON object by name. Objects of the API may have fields that other
// programs set and that this version does not know.
type Fields map[string]json.RawMessage

// fieldsOf returns the fields of a value that JSON encodes as an object.
func fieldsOf(v any) (Fields, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, errors.Wrap(err, "cannot encode an object")
	}
	var f Fields
	return f, errors.Wrap(json.Unmarshal(b, &f), "cannot decode an object")
}

// decode decodes a field into v. It leaves v unchanged if there is no such field.
func (f Fields) decode(name string, v any) error {
	b, ok := f[name]
	if !ok {
		return nil
	}
	return classify(json.Unmarshal(b, v), "", false)
}

// set sets a field.
func (f Fields) set(name string, v any) error {
	b, err := json.Marshal(v)
	f[name] = b
	return errors.Wrapf(err, "cannot encode field %q", name)
}

// without returns the fields except for the named ones, or nil if there are no others.
func (f Fields) without(names ...string) Fields {
	out := maps.Clone(f)
	for _, name := range names {
		// encoding/json ignores case.
		maps.DeleteFunc(out, func(n string, _ json.RawMessage) bool { return strings.EqualFold(n, name) })
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// only returns the named fields.
func (f Fields) only(names ...string) Fields {
	out := maps.Clone(f)
	for n := range f.without(names...) {
		delete(out, n)
	}
	return out
}

// namesOf returns the names of a struct's fields in JSON, sorted.
func namesOf[T any]() []string {
	var out []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// replace replaces the object at the path of a write, and keeps the fields of the current one that
// are neither in the request nor in fields.
func (c *core) replace(ctx context.Context, r request, body any, fields ...string) error {
	var current Fields
	if err := c.raw(ctx, r.scope, http.MethodGet, nil, &current, r.path...); ignoreNotFound(err) != nil {
		return err
	}
	own, err := fieldsOf(body)
	if err != nil {
		return err
	}
	_, err = c.writeKeeping(ctx, r, own, current.without(slices.Concat(fields, slices.Collect(maps.Keys(own)))...))
	return err
}

// writeKeeping makes a write whose body has our fields and those of others. If the API refuses it,
// it is sent again without the latter, because no document says whether the API accepts them: what a
// write may not have, nobody has set by one. It returns the body of the response, which may be
// anything.
func (c *core) writeKeeping(ctx context.Context, r request, own, others Fields) ([]byte, error) {
	for {
		all := maps.Clone(own)
		maps.Copy(all, others)
		b, err := json.Marshal(all)
		if err != nil {
			return nil, errors.Wrap(err, "cannot encode request")
		}
		r.body = b
		a, err := c.do(ctx, r)
		if len(others) > 0 && ClassOf(err) == ClassInvalid {
			others = nil
			continue
		}
		return a.body, err
	}
}
