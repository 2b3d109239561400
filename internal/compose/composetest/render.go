// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package composetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"sigs.k8s.io/yaml"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/tailscale-gateway/tailscale-gateway/internal/golden"
)

// target is the target of every condition, as checkRules verifies.
const target = "TARGET_COMPOSITE_AND_CLAIM"

// render returns a response in the form of a golden file: conditions and requirements take one line
// each, as do the resources that digests shortens. Nil digests shorten none. Fields that all
// responses have in common are omitted.
func render(t *testing.T, rsp *fnv1.RunFunctionResponse, digests *golden.Digests) []byte {
	t.Helper()
	j, err := protojson.Marshal(rsp)
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]any{}
	if err := json.Unmarshal(j, &m); err != nil {
		t.Fatal(err)
	}
	conditions, _ := m["conditions"].([]any)
	for i, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["target"] == target {
			c["status"] = strings.TrimPrefix(fmt.Sprint(c["status"]), "STATUS_CONDITION_")
			conditions[i] = golden.Condition(c)
		}
	}
	if requirements := object(m, "requirements", "resources"); requirements != nil {
		for key, r := range requirements {
			if r, ok := r.(map[string]any); ok {
				requirements[key] = selector(r)
			}
		}
		m["requirements"] = requirements
	}
	if resources := object(m, "desired", "resources"); digests != nil {
		for name, r := range resources {
			r, ok := r.(map[string]any)
			if !ok {
				continue
			}
			if line, ok := digests.Of(t, object(r, "resource")); ok {
				resources[name] = fmt.Sprintf("%v %s", r["ready"], line)
			}
		}
	}
	if composite := object(m, "desired", "composite"); composite != nil {
		resource := object(composite, "resource")
		delete(resource, "apiVersion")
		delete(resource, "kind")
	}
	if meta := object(m, "meta"); meta != nil {
		delete(meta, "tag")
		if meta["ttl"] == "0s" {
			delete(meta, "ttl")
		}
		if len(meta) == 0 {
			delete(m, "meta")
		}
	}
	y, err := yaml.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return y
}

// selector returns a requirement on one line: the kind that it selects, and the name or labels.
func selector(r map[string]any) string {
	ref := map[string]any{"apiVersion": r["apiVersion"], "kind": r["kind"], "name": ""}
	if n, ok := r["namespace"]; ok {
		ref["namespace"] = n
	}
	if n, ok := r["matchName"]; ok {
		ref["name"] = n
	}
	out := golden.Reference(ref)
	if labels := object(r, "matchLabels", "labels"); labels != nil {
		var pairs []string
		for _, k := range slices.Sorted(maps.Keys(labels)) {
			pairs = append(pairs, fmt.Sprintf("%s=%v", k, labels[k]))
		}
		out += "{" + strings.Join(pairs, ",") + "}"
	}
	return out
}

// object returns the object at a path. It is nil if there is none.
func object(m map[string]any, path ...string) map[string]any {
	for _, p := range path {
		next, ok := m[p].(map[string]any)
		if !ok {
			return nil
		}
		m = next
	}
	return m
}
