// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package render

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pmezard/go-difflib/difflib"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Labels by which Crossplane ties objects to a composite and to its claim.
const (
	labelComposite      = "crossplane.io/composite"
	labelClaimName      = "crossplane.io/claim-name"
	labelClaimNamespace = "crossplane.io/claim-namespace"
)

// crossplaneConditions are the types of conditions that Crossplane sets itself. It does not copy
// them from a composite to its claim.
var crossplaneConditions = []string{"Ready", "Responsive", "Synced"}

// unclaimed returns what a composite of another flavour and its children would be if Crossplane
// did for this world's objects what it does for a claim, and nothing else differed. For a
// composite without a claim these are this world's objects as they are.
func (w *state) unclaimed(t *testing.T, c *composite) []*unstructured.Unstructured {
	t.Helper()
	key := id(c.xr)
	claim := c.kind.claimOf(c.xr)
	if claim != nil {
		key = id(claim)
	}
	same, ok := w.composites[key]
	if !ok {
		t.Errorf("flavour %s has no %s", w.flavour.name, key)
		return nil
	}
	objects := decode(t, same.out)
	if claim != nil {
		asClaimed(t, objects, c)
	}
	return objects
}

// asClaimed changes a composite in a namespace, and what it composes, into what Crossplane makes
// of a claim with the same spec: the composite c.
func asClaimed(t *testing.T, objects []*unstructured.Unstructured, c *composite) {
	t.Helper()
	xr := objects[0]
	name, namespace, kind := xr.GetName(), xr.GetNamespace(), xr.GetKind()
	refs, _, err := unstructured.NestedSlice(xr.Object, "spec", "crossplane", "resourceRefs")
	if err != nil {
		t.Fatal(err)
	}
	conditions, _, err := unstructured.NestedSlice(xr.Object, "status", "conditions")
	if err != nil {
		t.Fatal(err)
	}

	unstructured.RemoveNestedField(xr.Object, "spec", "crossplane")
	claimed := c.kind.claimed(xr)
	claimed.SetUID(c.xr.GetUID())
	if len(refs) > 0 {
		set(t, claimed, claimedRefs(refs, namespace), "spec", "resourceRefs")
	}
	set(t, claimed, reported(conditions), "status", "claimConditionTypes")
	objects[0] = claimed

	for _, o := range objects[1:] {
		labels := o.GetLabels()
		labels[labelComposite], labels[labelClaimName], labels[labelClaimNamespace] = claimed.GetName(), name, namespace
		o.SetLabels(labels)
		owners := o.GetOwnerReferences()
		for i := range owners {
			if owners[i].Kind == kind && owners[i].Name == name {
				owners[i].Kind, owners[i].Name, owners[i].UID = claimed.GetKind(), claimed.GetName(), claimed.GetUID()
			}
		}
		o.SetOwnerReferences(owners)
	}
}

// claimedRefs returns the references of a cluster-scoped composite, which contain namespaces, in
// Crossplane's order.
func claimedRefs(refs []any, namespace string) []any {
	text := func(v any) string {
		m, ok := v.(map[string]any)
		if !ok {
			return ""
		}
		return fmt.Sprint(m["apiVersion"]) + fmt.Sprint(m["kind"]) + fmt.Sprint(m["name"]) + fmt.Sprint(m["namespace"])
	}
	for _, r := range refs {
		if m, ok := r.(map[string]any); ok {
			m["namespace"] = namespace
		}
	}
	slices.SortFunc(refs, func(a, b any) int { return strings.Compare(text(a), text(b)) })
	return refs
}

// reported returns the types of the conditions that Crossplane copies to a claim.
func reported(conditions []any) []any {
	var out []any
	for _, v := range conditions {
		c, ok := v.(map[string]any)
		if !ok || slices.Contains(crossplaneConditions, fmt.Sprint(c["type"])) {
			continue
		}
		out = append(out, c["type"])
	}
	return out
}

// set sets a list at a path of an object.
func set(t *testing.T, o *unstructured.Unstructured, v []any, path ...string) {
	t.Helper()
	if err := unstructured.SetNestedSlice(o.Object, v, path...); err != nil {
		t.Fatal(err)
	}
}

// difference returns how the objects of a composite differ from those that are expected, by kind
// and name. It is empty if they do not.
func difference(t *testing.T, want []*unstructured.Unstructured, c *composite) []byte {
	t.Helper()
	texts := map[string][2]string{}
	var order []string
	for side, objects := range [][]*unstructured.Unstructured{want, decode(t, c.out)} {
		for _, o := range objects {
			text := texts[id(o)]
			if text == [2]string{} {
				order = append(order, id(o))
			}
			text[side] = string(encode(t, o))
			texts[id(o)] = text
		}
	}
	var out strings.Builder
	for _, key := range order {
		diff, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
			A: difflib.SplitLines(texts[key][0]), B: difflib.SplitLines(texts[key][1]),
			FromFile: key + " expected", ToFile: key + " rendered", Context: 1,
		})
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString(diff)
	}
	return []byte(out.String())
}
