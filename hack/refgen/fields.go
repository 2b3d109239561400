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

// A field is an entry of a list of fields.
type field struct {
	// name is what a manifest has, and path is where: spec.ports[].name.
	name, path string

	// kind is the type, with what belongs in the same line.
	kind string

	// meaning describes the field in one paragraph of Markdown.
	meaning string

	// rules are the messages of the checks that no other text states.
	rules []string

	// fields are those beneath it.
	fields []field
}

// fields returns the fields beneath a schema, by name. The path is that of the schema.
func fields(s extv1.JSONSchemaProps, path string) []field {
	var out []field
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		f := field{name: name, path: strings.TrimPrefix(path+"."+name, "."), kind: kindOf(p), meaning: meaning(p), rules: slices.Concat(rules(p), rulesOfItem(p))}
		if slices.Contains(s.Required, name) {
			f.kind += ", required"
		}
		if !wellKnown(f.path) {
			element, suffix := elementOf(p)
			f.fields = fields(element, f.path+suffix)
		}
		out = append(out, f)
	}
	return out
}

// elementOf returns the schema that has the fields beneath a field, and what its path has in addition.
func elementOf(s extv1.JSONSchemaProps) (extv1.JSONSchemaProps, string) {
	switch {
	case s.Items != nil && s.Items.Schema != nil:
		return *s.Items.Schema, "[]"
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		return *s.AdditionalProperties.Schema, "[KEY]"
	}
	return s, ""
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

// meaning returns the description of a field, its default, and the API server's limits.
func meaning(s extv1.JSONSchemaProps) string {
	parts := []string{strings.Join(strings.Fields(s.Description), " ")}
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
func rules(s extv1.JSONSchemaProps) []string {
	var out []string
	for _, r := range s.XValidations {
		if r.Message != "" {
			out = append(out, strings.Join(strings.Fields(r.Message), " "))
		}
	}
	return out
}

func rulesOfItem(s extv1.JSONSchemaProps) []string {
	if s.Items == nil || s.Items.Schema == nil {
		return nil
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

func firstSentence(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if i := strings.Index(s, ". "); i >= 0 {
		return s[:i+1]
	}
	return s
}
