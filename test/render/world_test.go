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

// maxRounds is how often all composites of an example are rendered until they are
// at rest. A chain of objects that wait for each other takes a round a link.
const maxRounds = 16

// annotationResourceName is how Crossplane knows a composed resource again.
const annotationResourceName = "crossplane.io/composition-resource-name"

// A world is what there is beside functions: composites and what they compose,
// what controllers say of that, and what somebody else made.
type world struct {
	flavour *flavour

	// required are objects that somebody else made.
	required []*unstructured.Unstructured

	// overrides are laid over what controllers say.
	overrides []*unstructured.Unstructured

	// composites by id.
	composites map[string]*composite

	// seen is what came out of every render.
	seen []byte
}

// A composite and what came out when it was rendered last.
type composite struct {
	kind     *kind
	xr       *unstructured.Unstructured
	children []*unstructured.Unstructured
	out      []byte

	// in is what it was rendered from, as far as it matters to others.
	in string
}

// newWorld of an example's objects.
func newWorld(f *flavour, objects, required, overrides []*unstructured.Unstructured) *world {
	w := &world{flavour: f, required: required, overrides: overrides, composites: map[string]*composite{}}
	for _, o := range objects {
		if k, xr := f.composite(o); k != nil {
			w.composites[id(xr)] = newComposite(k, xr)
			continue
		}
		w.required = append(w.required, o)
	}
	return w
}

// newComposite gives a composite a UID, which what it composes refers to.
func newComposite(k *kind, xr *unstructured.Unstructured) *composite {
	h := fnv.New64a()
	h.Write([]byte(id(xr)))
	xr.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012x", h.Sum64()>>16)))
	return &composite{kind: k, xr: xr}
}

// settle renders all composites until none gives anything new. Rounds take turns
// in the order of what they bring, and the last is a whole one: at rest is who
// gives the same bytes for the same input in the opposite order.
//
// Other rounds pass over a composite whose children, and whose fellows' plain
// objects, are as they were: functions require hardly anything of each other that
// has a status, and the whole rounds are there for that.
func (w *world) settle(t *testing.T) {
	t.Helper()
	var diff []string
	whole := false
	for round := range maxRounds {
		diff = nil
		for _, key := range sorted(w.composites) {
			c, ok := w.composites[key]
			if !ok {
				continue // Its parent did away with it.
			}
			observed, cluster := w.observed(t, c), w.cluster(t)
			in := string(encode(t, append(append([]*unstructured.Unstructured{c.xr}, observed...), plain(cluster)...)...))
			if !whole && in == c.in {
				continue
			}
			if round%2 == 1 {
				slices.Reverse(observed)
				slices.Reverse(cluster)
			}
			before := c.out
			w.apply(t, c, c.kind.render(t, c.xr, observed, cluster))
			c.in = in
			if !bytes.Equal(before, c.out) {
				diff = append(diff, cmp.Diff(string(before), string(c.out)))
			}
		}
		if len(diff) == 0 && whole {
			return
		}
		whole = len(diff) == 0
	}
	t.Fatalf("not at rest after %d rounds, or not the same for input in another order; the last round changed: -before, +after:\n%s", maxRounds, strings.Join(diff, "\n"))
}

// plain are objects without their status.
func plain(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	out := make([]*unstructured.Unstructured, len(objects))
	for i, o := range objects {
		out[i] = o.DeepCopy()
		delete(out[i].Object, "status")
	}
	return out
}

// apply what a composite was rendered to.
func (w *world) apply(t *testing.T, c *composite, out []byte) {
	t.Helper()
	c.out = out
	objects := decode(t, out)
	w.seen = append(w.seen, out...)
	if len(objects) == 0 || id(objects[0]) != id(c.xr) {
		t.Fatalf("%s: the composite does not come first:\n%s", id(c.xr), out)
	}
	c.xr = objects[0]

	gone := map[string]bool{}
	for _, o := range c.children {
		if k, xr := w.flavour.composite(o); k != nil {
			gone[id(xr)] = true
		}
	}
	c.children = objects[1:]
	for _, o := range c.children {
		delete(o.Object, "status")
		k, xr := w.flavour.composite(o)
		if k == nil {
			continue
		}
		delete(gone, id(xr))
		child := newComposite(k, xr)
		if old, ok := w.composites[id(xr)]; ok {
			child.children, child.out, child.in = old.children, old.out, old.in
			keep(t, xr, old.xr)
		}
		w.composites[id(xr)] = child
	}
	for key := range gone {
		delete(w.composites, key)
	}
}

// keep in a composite that another one composes what Crossplane wrote into it:
// its status, and its references to what it composes, without which Crossplane
// would not look for that.
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

// observed is what a composite composes, with what controllers say of it.
func (w *world) observed(t *testing.T, c *composite) []*unstructured.Unstructured {
	t.Helper()
	out := make([]*unstructured.Unstructured, len(c.children))
	for i, o := range c.children {
		out[i] = w.report(t, o)
	}
	return out
}

// cluster is all objects that a function may require.
func (w *world) cluster(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	made := map[string]bool{}
	add := func(o *unstructured.Unstructured) {
		if !made[id(o)] {
			made[id(o)] = true
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

// report is an object with its status: that of a composite is what it was
// rendered to, others have what their controllers say.
func (w *world) report(t *testing.T, o *unstructured.Unstructured) *unstructured.Unstructured {
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
	for _, over := range w.overrides {
		if id(over) == id(o) {
			merge(out.Object, over.Object)
		}
	}
	return out
}

// made are the objects of one kind that composites compose.
func (w *world) made(kind string) []*unstructured.Unstructured {
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

// merge lays one tree over another.
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

// id of an object: group, kind, namespace and name.
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
