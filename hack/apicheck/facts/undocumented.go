// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// Undocumented returns the parts of a JSON body that are not described, as PLACE
// TYPE, sorted. Parts of an undescribed part are left out.
func Undocumented(described map[string]Value, body []byte) ([]string, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, errors.Wrap(err, "cannot decode body")
	}
	found := undocumented(described, "$", v)
	slices.Sort(found)
	return slices.Compact(found), nil
}

func undocumented(described map[string]Value, location string, v any) []string {
	t := typeOf(v)
	d, ok := described[location]
	if !ok || !d.Has(t) {
		return []string{location + " " + t}
	}
	var found []string
	switch v := v.(type) {
	case map[string]any:
		if opaque(described, location) {
			return nil
		}
		for name, p := range v {
			child := location + "." + name
			if _, ok := described[child]; !ok {
				if _, ok := described[location+"{}"]; ok {
					child = location + "{}"
				}
			}
			found = append(found, undocumented(described, child, p)...)
		}
	case []any:
		for _, item := range v {
			found = append(found, undocumented(described, location+"[]", item)...)
		}
	}
	return found
}

// opaque reports whether nothing is said of an object's properties.
func opaque(described map[string]Value, location string) bool {
	for place := range described {
		if strings.HasPrefix(place, location+".") || strings.HasPrefix(place, location+"{}") {
			return false
		}
	}
	return true
}

// typeOf returns the JSON type of a decoded value.
func typeOf(v any) string {
	switch v := v.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case bool:
		return "boolean"
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return "number"
		}
		return "integer"
	}
	return "null"
}
