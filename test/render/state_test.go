// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package render

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// maxRounds is the maximum number of rounds until all composites of an example are stable. A chain
// of objects that wait for each other takes a round for each link.
const maxRounds = 16

// annotationResourceName is the annotation by which Crossplane identifies a composed resource.
const annotationResourceName = "crossplane.io/composition-resource-name"

// A state holds the objects beside functions: composites and their composed objects, the status
// from controllers, and objects of other owners.
type state struct {
	flavour *flavour

	// required are objects of other owners.
	required []*unstructured.Unstructured

	// overrides are merged into the status from controllers.
	overrides []*unstructured.Unstructured

	// composites by id.
	composites map[string]*composite

	// seen has the output of every render.
	seen []byte
}

// A composite and its last output.
type composite struct {
	kind     *kind
	xr       *unstructured.Unstructured
	children []*unstructured.Unstructured
	out      []byte

	// input is the input of the last render that depends on other composites.
	input string
}

// newState returns the state of an example's objects.
func newState(f *flavour, objects, required, overrides []*unstructured.Unstructured) *state {
	w := &state{flavour: f, required: required, overrides: overrides, composites: map[string]*composite{}}
	for _, o := range objects {
		if k, xr := f.composite(o); k != nil {
			w.composites[id(xr)] = newComposite(k, xr)
			continue
		}
		w.required = append(w.required, o)
	}
	return w
}

// newComposite gives a composite a UID, to which its composed objects refer.
func newComposite(k *kind, xr *unstructured.Unstructured) *composite {
	h := fnv.New64a()
	h.Write([]byte(id(xr)))
	xr.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012x", h.Sum64()>>16)))
	return &composite{kind: k, xr: xr}
}

// settle renders all composites until the result is stable. The order of the input alternates
// between rounds, and the last is a full round: a stable composite renders the same bytes from the
// same input in the opposite order.
//
// Other rounds skip a composite whose children, and whose siblings' objects without status, have
// not changed: functions hardly require any object of another composite that has a status, and the
// full rounds cover that.
func (w *state) settle(t *testing.T) {
	t.Helper()
	var diff []string
	whole := false
	for round := range maxRounds {
		diff = nil
		for _, key := range sorted(w.composites) {
			c, ok := w.composites[key]
			if !ok {
				continue // Its parent has deleted it.
			}
			observed, cluster := w.observed(t, c), w.cluster(t)
			input := string(encode(t, append(append([]*unstructured.Unstructured{c.xr}, observed...), plain(cluster)...)...))
			if !whole && input == c.input {
				continue
			}
			if round%2 == 1 {
				slices.Reverse(observed)
				slices.Reverse(cluster)
			}
			previous := c.out
			w.apply(t, c, c.kind.render(t, c.xr, observed, cluster))
			c.input = input
			if !bytes.Equal(previous, c.out) {
				diff = append(diff, cmp.Diff(string(previous), string(c.out)))
			}
		}
		if len(diff) == 0 && whole {
			return
		}
		whole = len(diff) == 0
	}
	t.Fatalf("not at rest after %d rounds, or different for input in another order; the last round changed: -before, +after:\n%s", maxRounds, strings.Join(diff, "\n"))
}

// plain returns objects without their status.
func plain(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	out := make([]*unstructured.Unstructured, len(objects))
	for i, o := range objects {
		out[i] = o.DeepCopy()
		delete(out[i].Object, "status")
	}
	return out
}

// apply applies the output of a composite.
func (w *state) apply(t *testing.T, c *composite, out []byte) {
	t.Helper()
	c.out = out
	objects := decode(t, out)
	w.seen = append(w.seen, out...)
	if len(objects) == 0 || id(objects[0]) != id(c.xr) {
		t.Fatalf("%s: the composite is not the first object:\n%s", id(c.xr), out)
	}
	c.xr = objects[0]

	removed := map[string]bool{}
	for _, o := range c.children {
		if k, xr := w.flavour.composite(o); k != nil {
			removed[id(xr)] = true
		}
	}
	c.children = objects[1:]
	for _, o := range c.children {
		delete(o.Object, "status")
		k, xr := w.flavour.composite(o)
		if k == nil {
			continue
		}
		delete(removed, id(xr))
		child := newComposite(k, xr)
		if old, ok := w.composites[id(xr)]; ok {
			child.children, child.out, child.input = old.children, old.out, old.input
			keep(t, xr, old.xr)
		}
		w.composites[id(xr)] = child
	}
	for key := range removed {
		delete(w.composites, key)
	}
}

// keep copies into a composed composite the fields that Crossplane wrote: its status, and its
// references to composed objects, without which Crossplane would not read these.
func keep(t *testing.T, xr, old *unstructured.Unstructured) {
	t.Helper()
	for _, path := range [][]string{{"status"}, {"spec", "crossplane"}, {"spec", "resourceRefs"}, {"spec", "compositionRef"}} {
		v, found, err := unstructured.NestedFieldCopy(old.Object, path...)
		if err != nil {
			t.Fatal(err)
		}
		if !found {
			continue
		}
		if err := unstructured.SetNestedField(xr.Object, v, path...); err != nil {
			t.Fatal(err)
		}
	}
}

// observed returns the composed objects of a composite, with the status from controllers.
func (w *state) observed(t *testing.T, c *composite) []*unstructured.Unstructured {
	t.Helper()
	out := make([]*unstructured.Unstructured, len(c.children))
	for i, o := range c.children {
		out[i] = w.report(t, o)
	}
	return out
}

// cluster returns all objects that a function may require.
func (w *state) cluster(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	seen := map[string]bool{}
	add := func(o *unstructured.Unstructured) {
		if !seen[id(o)] {
			seen[id(o)] = true
			out = append(out, o)
		}
	}
	for _, key := range sorted(w.composites) {
		for _, o := range w.observed(t, w.composites[key]) {
			add(o)
		}
		add(w.composites[key].xr.DeepCopy())
	}
	for _, key := range sorted(w.composites) {
		if claim := w.composites[key].kind.claimOf(w.composites[key].xr); claim != nil {
			add(claim)
		}
	}
	for _, o := range w.required {
		add(o.DeepCopy())
	}
	return out
}

// report returns an object with its status: from the last render for a composite, and from the
// controller for others.
func (w *state) report(t *testing.T, o *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	out := o.DeepCopy()
	if k, xr := w.flavour.composite(o); k != nil {
		// A claim has the status of its composite, too.
		c, ok := w.composites[id(xr)]
		if ok && c.xr.Object["status"] != nil {
			out.Object["status"] = c.xr.Object["status"]
		}
		if ok && id(xr) == id(o) {
			out.SetUID(c.xr.GetUID())
		}
		return out.DeepCopy()
	}
	w.control(t, out)
	for _, override := range w.overrides {
		if id(override) == id(o) {
			merge(out.Object, override.Object)
		}
	}
	return out
}

// made returns the composed objects of one kind.
func (w *state) made(kind string) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, key := range sorted(w.composites) {
		for _, o := range w.composites[key].children {
			if o.GetKind() == kind {
				out = append(out, o)
			}
		}
	}
	return out
}

// merge merges a tree into another.
func merge(to, from map[string]any) {
	for k, v := range from {
		a, isMap := to[k].(map[string]any)
		b, both := v.(map[string]any)
		if isMap && both {
			merge(a, b)
			continue
		}
		to[k] = v
	}
}

// id returns the ID of an object: group, kind, namespace and name.
func id(o *unstructured.Unstructured) string {
	return strings.Join([]string{o.GroupVersionKind().GroupKind().String(), o.GetNamespace(), o.GetName()}, "/")
}

func sorted(m map[string]*composite) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
