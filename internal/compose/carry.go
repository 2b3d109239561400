// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// carryMetadata removes the fields of an object's metadata that a function may not apply. They
// belong to the API server, to Crossplane, or to a controller.
func carryMetadata(o map[string]any) {
	metadata, ok := o["metadata"].(map[string]any)
	if !ok {
		return
	}
	out := map[string]any{}
	for _, k := range []string{"name", "namespace"} {
		if v, ok := metadata[k]; ok {
			out[k] = v
		}
	}
	if l := withoutCrossplane(stringMap(metadata["labels"])); l != nil {
		out["labels"] = anyMap(l)
	}
	if a := withoutCrossplane(composedAnnotations(metadata)); a != nil {
		out["annotations"] = anyMap(a)
	}
	// An object that a function composed with a finalizer would lose the finalizer.
	if fs, ok := metadata["finalizers"].([]any); ok && slices.Contains(fs, any(meta.FinalizerManaged)) && metadata["deletionTimestamp"] == nil {
		out["finalizers"] = []any{meta.FinalizerManaged}
	}
	o["metadata"] = out
}

// composedManager is the prefix of the field managers with which Crossplane applies the objects of
// functions (crossplane v2.4 composition_functions.go, FieldOwnerComposedPrefix).
const composedManager = "apiextensions.crossplane.io/composed"

// composedAnnotations returns the annotations that a function composed. Other clients also write
// annotations of children, which a function must not claim.
func composedAnnotations(metadata map[string]any) map[string]string {
	annotations := stringMap(metadata["annotations"])
	out := map[string]string{}
	entries, _ := metadata["managedFields"].([]any)
	for _, e := range entries {
		e, _ := e.(map[string]any)
		if m, _ := e["manager"].(string); !strings.HasPrefix(m, composedManager) {
			continue
		}
		fields, _, err := unstructured.NestedMap(e, "fieldsV1", "f:metadata", "f:annotations")
		if err != nil {
			continue
		}
		for f := range fields {
			k := strings.TrimPrefix(f, "f:")
			if v, ok := annotations[k]; ok {
				out[k] = v
			}
		}
	}
	return out
}

// stringMap returns the strings in a map.
func stringMap(v any) map[string]string {
	m, _ := v.(map[string]any)
	out := make(map[string]string, len(m))
	for k, e := range m {
		if s, ok := e.(string); ok {
			out[k] = s
		}
	}
	return out
}

// anyMap returns a map of strings as a map of any values.
func anyMap(m map[string]string) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}
