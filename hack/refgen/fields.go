// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// A field is one line of a page.
type field struct {
	path    string
	kind    string
	meaning string
}

// fields lists the fields beneath a schema, with those beneath them, by path.
func fields(s extv1.JSONSchemaProps) []field {
	var out []field
	walk(s, "", &out)
	return out
}

func walk(s extv1.JSONSchemaProps, prefix string, out *[]field) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		path := prefix + name
		*out = append(*out, field{path: path, kind: kindOf(p), meaning: meaning(p, slices.Contains(s.Required, name))})
		switch {
		case wellKnown(path):
		case p.Items != nil && p.Items.Schema != nil:
			walk(*p.Items.Schema, path+"[].", out)
		case p.AdditionalProperties != nil && p.AdditionalProperties.Schema != nil:
			walk(*p.AdditionalProperties.Schema, path+"[KEY].", out)
		default:
			walk(p, path+".", out)
		}
	}
}

// wellKnown says which fields have Kubernetes' own types: pages of those are
// elsewhere, and long.
func wellKnown(path string) bool {
	for _, s := range []string{"affinity", "tolerations", "resources", "topologySpreadConstraints", "conditions", "selector"} {
		if path == s || strings.HasSuffix(path, "."+s) {
			return true
		}
	}
	return false
}

func kindOf(s extv1.JSONSchemaProps) string {
	switch {
	case s.XIntOrString:
		return "integer or string"
	case s.Type == "array" && s.Items != nil && s.Items.Schema != nil:
		return "list of " + kindOf(*s.Items.Schema)
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		return "map of " + kindOf(*s.AdditionalProperties.Schema)
	case s.Type == "string" && s.Format == "date-time":
		return "time"
	case s.Type == "":
		return "any"
	}
	return s.Type
}

// meaning returns the description of a field, and the API server's checks.
func meaning(s extv1.JSONSchemaProps, required bool) string {
	parts := []string{strings.TrimSpace(s.Description)}
	if required {
		parts = append(parts, "Required.")
	}
	if s.Default != nil {
		parts = append(parts, fmt.Sprintf("Default: `%s`.", s.Default.Raw))
	}
	item := s
	if s.Items != nil && s.Items.Schema != nil {
		item = *s.Items.Schema
	}
	if len(item.Enum) > 0 {
		var vs []string
		for _, e := range item.Enum {
			vs = append(vs, "`"+value(e)+"`")
		}
		parts = append(parts, "One of "+strings.Join(vs, ", ")+".")
	}
	parts = append(parts, limits(s, item)...)
	for _, r := range []string{rules(s), rulesOfItem(s)} {
		if r != "" {
			parts = append(parts, "Rules: "+r+".")
		}
	}
	return strings.TrimSpace(strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), " "))
}

func limits(s, item extv1.JSONSchemaProps) []string {
	var out []string
	add := func(unit string, low, high *int64) {
		switch {
		case low != nil && high != nil:
			out = append(out, fmt.Sprintf("%d to %d%s.", *low, *high, unit))
		case low != nil:
			out = append(out, fmt.Sprintf("At least %d%s.", *low, unit))
		case high != nil:
			out = append(out, fmt.Sprintf("At most %d%s.", *high, unit))
		}
	}
	add(" entries", s.MinItems, s.MaxItems)
	add(" entries", s.MinProperties, s.MaxProperties)
	add(" characters", item.MinLength, item.MaxLength)
	add("", integer(item.Minimum), integer(item.Maximum))
	if item.Pattern != "" {
		out = append(out, "Pattern: `"+item.Pattern+"`.")
	}
	return out
}

func integer(f *float64) *int64 {
	if f == nil {
		return nil
	}
	i := int64(*f)
	return &i
}

// rules returns the messages of CEL rules.
func rules(s extv1.JSONSchemaProps) string {
	var out []string
	for _, r := range s.XValidations {
		if r.Message != "" {
			out = append(out, r.Message)
		}
	}
	return strings.Join(out, "; ")
}

func rulesOfItem(s extv1.JSONSchemaProps) string {
	if s.Items == nil || s.Items.Schema == nil {
		return ""
	}
	return rules(*s.Items.Schema)
}

func value(v extv1.JSON) string {
	var s string
	if json.Unmarshal(v.Raw, &s) == nil {
		return s
	}
	return string(v.Raw)
}

// cell makes a text fit for a cell of a table.
func cell(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", `\|`)
}

func firstSentence(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if i := strings.Index(s, ". "); i >= 0 {
		return s[:i+1]
	}
	return s
}
