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

func undocumented(described map[string]Value, at string, v any) []string {
	t := typeOf(v)
	d, ok := described[at]
	if !ok || !d.Has(t) {
		return []string{at + " " + t}
	}
	var found []string
	switch v := v.(type) {
	case map[string]any:
		if opaque(described, at) {
			return nil
		}
		for name, p := range v {
			below := at + "." + name
			if _, ok := described[below]; !ok {
				if _, ok := described[at+"{}"]; ok {
					below = at + "{}"
				}
			}
			found = append(found, undocumented(described, below, p)...)
		}
	case []any:
		for _, item := range v {
			found = append(found, undocumented(described, at+"[]", item)...)
		}
	}
	return found
}

// opaque reports whether nothing is said of an object's properties.
func opaque(described map[string]Value, at string) bool {
	for place := range described {
		if strings.HasPrefix(place, at+".") || strings.HasPrefix(place, at+"{}") {
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
