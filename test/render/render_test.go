// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package render

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tailscale-gateway/tailscale-gateway/internal/golden"
)

// goldens is the folder of the results.
const goldens = "testdata"

// An example is a file, or the files of a folder.
type example struct {
	name  string
	files []string
}

// examples returns all examples.
func examples(t *testing.T) []example {
	t.Helper()
	var out []example
	for _, p := range glob(t, filepath.Join(root, "examples", "*")) {
		base := filepath.Base(p)
		switch {
		case base == "managed", base == "publish", base == "gateway.yaml", strings.HasPrefix(base, "route-policy"):
			// It has no composite.
		case base == "design":
			// Its objects have statuses, which package apiserver checks.
		case strings.HasSuffix(base, ".yaml"):
			out = append(out, example{name: strings.TrimSuffix(base, ".yaml"), files: []string{p}})
		default:
			if files := glob(t, filepath.Join(p, "*.yaml")); len(files) > 0 {
				out = append(out, example{name: base, files: files})
			}
		}
	}
	if len(out) == 0 {
		t.Fatal("there are no examples")
	}
	return out
}

// A result is the result of all examples.
type result struct {
	mu sync.Mutex

	// seen are all objects of a flavour, in examples and in results.
	seen map[string][]byte

	// extensions that define them.
	extensions map[string][]string
}

// add records the objects of an example.
func (r *result) add(f *flavour, seen []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[f.name] = append(r.seen[f.name], seen...)
	r.extensions[f.name] = append(r.extensions[f.name], f.extensions...)
}

// inFull are the examples whose goldens contain every object. Package apiserver reads the Roles
// of most of them.
var inFull = []string{"extension-server", "gateway-split-dns", "kernel", "quickstart", "tls"}

func TestExamples(t *testing.T) {
	r := &result{seen: map[string][]byte{}, extensions: map[string][]string{}}
	all := flavours(t)
	t.Run("Render", func(t *testing.T) {
		for _, e := range examples(t) {
			t.Run(e.name, func(t *testing.T) {
				t.Parallel()
				e.test(t, all, r)
			})
		}
	})
	// One call for all: it spends most of its time on reading schemas.
	t.Run("Validate", func(t *testing.T) {
		for name, seen := range r.seen {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				slices.Sort(r.extensions[name])
				validate(t, slices.Compact(r.extensions[name]), seen)
			})
		}
	})
	named := map[string]bool{}
	for _, e := range examples(t) {
		named[filepath.Join(goldens, e.name)] = true
	}
	for _, dir := range glob(t, filepath.Join(goldens, "*")) {
		if !named[dir] {
			golden.Prune(t, filepath.Join(dir, "*", "*"), nil)
		}
	}
}

// test renders an example in each flavour. It compares the composites of the first flavour, which
// is the namespaced one, with goldens, and those of each other flavour with the first flavour:
// goldens contain the differences that Crossplane does not make by itself (asClaimed).
func (e example) test(t *testing.T, flavours []*flavour, r *result) {
	t.Helper()
	var base *state
	created, ran := map[string]bool{}, 0
	for i, f := range flavours {
		t.Run(f.name, func(t *testing.T) {
			ran++
			if i > 0 && base == nil {
				t.Fatalf("flavour %s is compared with %s, which did not run: choose both with -run", f.name, flavours[0].name)
			}
			f := f.with(t, e.files)
			w, objects := e.render(t, f)
			for _, key := range sorted(w.composites) {
				c := w.composites[key]
				path := filepath.Join(goldens, e.name, f.name, strings.ToLower(c.xr.GetKind())+"-"+c.xr.GetName())
				if i == 0 {
					path += ".yaml"
					digests := &golden.Digests{}
					if slices.Contains(inFull, e.name) {
						digests = nil
					}
					golden.Compare(t, path, summary(t, c, digests), digests)
					created[path] = true
					continue
				}
				path += ".diff"
				got := difference(t, base.unclaimed(t, c), c)
				if _, err := os.Stat(path); len(got) > 0 || err == nil && !golden.Updating() {
					golden.Compare(t, path, got, nil)
					created[path] = true
				}
			}
			r.add(f, append(encode(t, objects...), w.seen...))
			if i == 0 {
				base = w
			}
		})
		if t.Failed() {
			return
		}
	}
	// A filter may leave out a flavour.
	if ran == len(flavours) {
		golden.Prune(t, filepath.Join(goldens, e.name, "*", "*"), created)
	}
}

// render renders an example until it is at rest. It also returns the example's own objects.
func (e example) render(t *testing.T, f *flavour) (*state, []*unstructured.Unstructured) {
	t.Helper()
	var objects []*unstructured.Unstructured
	for _, file := range e.files {
		objects = append(objects, read(t, file)...)
	}
	required := append(read(t, filepath.Join(goldens, e.name, "required.yaml")), read(t, filepath.Join(goldens, "required.yaml"))...)
	w := newState(f, objects, required, read(t, filepath.Join(goldens, e.name, "observed.yaml")))
	if len(w.composites) == 0 {
		t.Fatal("the example has no composite")
	}
	w.settle(t)
	return w, objects
}

// summary returns what a composite was rendered to as goldens contain it: conditions and references
// take one line each, and so do the objects that digests shortens. Nil digests shorten none.
func summary(t *testing.T, c *composite, digests *golden.Digests) []byte {
	t.Helper()
	all := decode(t, c.out)
	shorten(all[0])
	out := all[:1]
	var lines []any
	for _, o := range all[1:] {
		line, ok := "", false
		if digests != nil {
			line, ok = digests.Of(t, o.Object)
		}
		if ok {
			lines = append(lines, line)
			continue
		}
		out = append(out, o)
	}
	if len(lines) > 0 {
		out = append(out, &unstructured.Unstructured{Object: map[string]any{"digests": lines}})
	}
	return encode(t, out...)
}

// renderedAt is the time of every transition of a condition that the command line makes.
const renderedAt = "2024-01-01T00:00:00Z"

// shorten puts each condition of a composite, and each reference to what it composes, on one
// line.
func shorten(xr *unstructured.Unstructured) {
	for _, path := range [][]string{{"status", "conditions"}, {"spec", "crossplane", "resourceRefs"}} {
		l, ok, err := unstructured.NestedSlice(xr.Object, path...)
		if err != nil || !ok {
			continue
		}
		for i, v := range l {
			m, ok := v.(map[string]any)
			switch {
			case !ok:
			case path[0] == "spec":
				l[i] = golden.Reference(m)
			case m["lastTransitionTime"] == renderedAt:
				l[i] = golden.Condition(m)
			}
		}
		if err := unstructured.SetNestedSlice(xr.Object, l, path...); err != nil {
			panic(err) // Not reached: the slice was there.
		}
	}
}
