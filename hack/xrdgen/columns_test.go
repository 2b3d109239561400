// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// filter matches a filter on list items in a JSONPath, such as [?(@.type=="Ready")].
var filter = regexp.MustCompile(`\[[^]]*\]`)

// TestColumns checks that each printed column shows a field of its kind: the API server accepts a
// path that does not exist, and the column is empty.
func TestColumns(t *testing.T) {
	columns := 0
	for _, pattern := range []string{"../../package/provider/crds/*.yaml", "../../package/configuration/xrds/*.yaml", "../../package/charts/*/files/crds/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no files match %s: %v", pattern, err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			// The versions of a CompositeResourceDefinition have the same fields.
			crd := &extv1.CustomResourceDefinition{}
			if err := yaml.Unmarshal(b, crd); err != nil {
				t.Fatalf("%s: %v", f, err)
			}
			for _, v := range crd.Spec.Versions {
				for _, c := range v.AdditionalPrinterColumns {
					columns++
					if !has(v.Schema.OpenAPIV3Schema, c.JSONPath) {
						t.Errorf("%s: column %s shows %s, which the kind does not have", f, c.Name, c.JSONPath)
					}
				}
			}
		}
	}
	if columns == 0 {
		t.Error("no kind has columns")
	}
}

// has reports whether a schema has the field of a JSONPath. Crossplane and the API server add
// metadata and the conditions of composite resources to schemas.
func has(s *extv1.JSONSchemaProps, path string) bool {
	if strings.HasPrefix(path, ".metadata.") || strings.HasPrefix(path, ".status.conditions[") {
		return true
	}
	for _, name := range strings.Split(filter.ReplaceAllString(strings.TrimPrefix(path, "."), ""), ".") {
		if s.Items != nil && s.Items.Schema != nil {
			s = s.Items.Schema
		}
		next, ok := s.Properties[name]
		if !ok {
			return false
		}
		s = &next
	}
	return true
}
