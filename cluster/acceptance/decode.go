// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
)

// Kinds of problems with a field of a reply.
const (
	fieldUnknown  = "unknown"  // The product knows no such field.
	fieldMistyped = "mistyped" // The product cannot decode it.
	fieldMissing  = "missing"  // The product needs it.
)

// A finding is a field of a reply that differs from the product's types.
type finding struct {
	problem string
	path    string
	// detail describes the problem.
	detail string
}

func (f finding) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s field %s %s", f.problem, f.path, f.detail))
}

// compareType compares decoded JSON with the type that the product decodes it into, and returns the
// differences, sorted and without duplicates. needed are required paths, such as devices[].nodeId.
func compareType(v any, typ reflect.Type, needed ...string) []finding {
	c := &typeComparison{seen: map[finding]bool{}}
	c.value("", v, typ)
	for _, path := range needed {
		if !hasPath(v, strings.Split(path, ".")) {
			c.add(fieldMissing, path, "")
		}
	}
	return slices.SortedFunc(mapKeys(c.seen), func(a, b finding) int { return cmp.Or(cmp.Compare(a.problem, b.problem), cmp.Compare(a.path, b.path)) })
}

func mapKeys[K comparable, V any](m map[K]V) func(func(K) bool) {
	return func(yield func(K) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

type typeComparison struct{ seen map[finding]bool }

func (c *typeComparison) add(problem, path, detail string) {
	c.seen[finding{problem, cmp.Or(path, "(root)"), detail}] = true
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// value compares one value. Null decodes into any type.
func (c *typeComparison) value(path string, v any, typ reflect.Type) {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if v == nil || typ.Kind() == reflect.Interface {
		return
	}
	if reflect.PointerTo(typ).Implements(unmarshaler) {
		if err := json.Unmarshal(mustJSON(v), reflect.New(typ).Interface()); err != nil {
			c.add(fieldMistyped, path, "is a "+typeOf(v)+" that "+typ.String()+" does not take")
		}
		return
	}
	ok := true
	switch typ.Kind() { // Types of the API have no other kinds.
	case reflect.String:
		_, ok = v.(string)
	case reflect.Bool:
		_, ok = v.(bool)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n, numeric := v.(float64)
		ok = numeric && n == math.Trunc(n)
	case reflect.Float32, reflect.Float64:
		_, ok = v.(float64)
	case reflect.Slice, reflect.Array:
		var l []any
		if l, ok = v.([]any); ok {
			for _, e := range l {
				c.value(path+"[]", e, typ.Elem())
			}
		}
	case reflect.Map:
		var m map[string]any
		if m, ok = v.(map[string]any); ok {
			for _, e := range m {
				c.value(join(path, "*"), e, typ.Elem())
			}
		}
	case reflect.Struct:
		var m map[string]any
		if m, ok = v.(map[string]any); ok {
			c.object(path, m, typ)
		}
	}
	if !ok {
		c.add(fieldMistyped, path, "is a "+typeOf(v)+", the product's type is "+typ.String())
	}
}

func (c *typeComparison) object(path string, m map[string]any, typ reflect.Type) {
	fields := fieldsOf(typ)
	for k, v := range m {
		// Like encoding/json, ignore the case.
		f, ok := fields[strings.ToLower(k)]
		if !ok {
			c.add(fieldUnknown, join(path, k), "is a "+typeOf(v))
			continue
		}
		c.value(join(path, k), v, f)
	}
}

// fieldsOf returns the types of a struct's fields, and of those embedded, by the
// lower case of their JSON names.
func fieldsOf(typ reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			for k, t := range fieldsOf(f.Type) {
				out[k] = t
			}
			continue
		}
		if f.IsExported() && name != "-" {
			out[strings.ToLower(cmp.Or(name, f.Name))] = f.Type
		}
	}
	return out
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// typeOf names the type of decoded JSON.
func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "string"
	case bool:
		return "boolean"
	case float64, json.Number:
		return "number"
	case []any:
		return "list"
	}
	return "object"
}

// hasPath reports whether every element of lists on the path has the field. A list
// without elements lacks nothing.
func hasPath(v any, path []string) bool {
	if len(path) == 0 {
		return true
	}
	key, isList := strings.CutSuffix(path[0], "[]")
	m, ok := v.(map[string]any)
	if !ok {
		return false
	}
	e, ok := m[key]
	if !ok {
		// The API may omit empty lists, and the product treats absent lists as empty.
		return isList
	}
	if !isList {
		return hasPath(e, path[1:])
	}
	l, ok := e.([]any)
	if !ok {
		return e == nil
	}
	for _, e := range l {
		if !hasPath(e, path[1:]) {
			return false
		}
	}
	return true
}
