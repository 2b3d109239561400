// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"

	"github.com/tailscale/hujson"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// canonical returns the same text for equivalent values.
func canonical(value []byte, sh shape) (string, error) {
	v, err := decode(value)
	if err != nil {
		return "", err
	}
	// Lists in tables are sets: owners, members, approvers.
	if l, ok := v.([]any); ok && sh == table {
		texts := make([]string, 0, len(l))
		for _, e := range l {
			texts = append(texts, string(encode(nil, e)))
		}
		slices.Sort(texts)
		l = l[:0]
		for _, t := range slices.Compact(texts) {
			l = append(l, t)
		}
		v = l
	}
	return string(encode(nil, v)), nil
}

// canonicalOf returns the canonical text of a value of a policy file.
func canonicalOf(v hujson.Value, sh shape) (string, error) {
	v = v.Clone()
	v.BeforeExtra, v.AfterExtra = nil, nil
	v.Standardize()
	return canonical(v.Pack(), sh)
}

// render returns a value in one line, in the usual style of policy files.
func render(value []byte) (string, error) {
	v, err := decode(value)
	return string(encode(nil, v)), err
}

func decode(value []byte) (any, error) {
	var v any
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, errors.Wrap(err, "cannot decode value")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("cannot decode value: there is more than one")
	}
	return v, nil
}

// order is the usual order of the fields of grants, rules and tests. Other fields follow by
// name.
var order = map[string]int{
	"action": -9, "target": -8, "src": -7, "dst": -6, "users": -5, "ip": -4, "proto": -3, "attr": -2, "app": -1,
}

func encode(b []byte, v any) []byte {
	switch v := v.(type) {
	case map[string]any:
		keys := slices.SortedFunc(maps.Keys(v), func(x, y string) int {
			if d := order[x] - order[y]; d != 0 {
				return d
			}
			return bytes.Compare([]byte(x), []byte(y))
		})
		b = append(b, '{')
		for i, k := range keys {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = append(b, hujson.String(k)...)
			b = append(b, ": "...)
			b = encode(b, v[k])
		}
		return append(b, '}')
	case []any:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = encode(b, e)
		}
		return append(b, ']')
	case string:
		return append(b, hujson.String(v)...)
	case json.Number:
		return append(b, v...)
	case bool:
		return append(b, hujson.Bool(v)...)
	}
	return append(b, "null"...)
}
