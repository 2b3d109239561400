// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package render

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
		case base == "managed", base == "gateway.yaml", strings.HasPrefix(base, "route-policy"):
			// It has no composite.
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

	// goldens by path.
	goldens map[string]bool

	// seen are all objects of a flavour, in examples and in results.
	seen map[string][]byte

	// extensions that define them.
	extensions map[string][]string
}

func (r *result) add(f *flavour, seen []byte, paths []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range paths {
		r.goldens[p] = true
	}
	r.seen[f.name] = append(r.seen[f.name], seen...)
	r.extensions[f.name] = append(r.extensions[f.name], f.extensions...)
}

func TestExamples(t *testing.T) {
	r := &result{goldens: map[string]bool{}, seen: map[string][]byte{}, extensions: map[string][]string{}}
	t.Run("Render", func(t *testing.T) {
		for _, e := range examples(t) {
			for _, f := range flavours(t) {
				t.Run(e.name+"/"+f.name, func(t *testing.T) {
					t.Parallel()
					e.test(t, f.with(t, e.files), r)
				})
			}
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
	if !t.Failed() {
		checkNoOthers(t, r.goldens)
	}
}

func (e example) test(t *testing.T, f *flavour, r *result) {
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

	var paths []string
	for _, key := range sorted(w.composites) {
		c := w.composites[key]
		path := filepath.Join(goldens, e.name, f.name, strings.ToLower(c.xr.GetKind())+"-"+c.xr.GetName()+".yaml")
		paths = append(paths, path)
		if *update {
			rewrite(t, path, c.out)
			continue
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Errorf("%v; run make render-goldens", err)
			continue
		}
		if diff := cmp.Diff(string(want), string(c.out)); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", path, diff)
		}
	}
	r.add(f, append(encode(t, objects...), w.seen...), paths)
}

// rewrite writes a golden, unless it is up to date.
func rewrite(t *testing.T, path string, to []byte) {
	t.Helper()
	if is, err := os.ReadFile(path); err == nil && bytes.Equal(is, to) {
		return
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, to, 0o600); err != nil {
		t.Fatal(err)
	}
}

// checkNoOthers fails for goldens without an example, or deletes them.
func checkNoOthers(t *testing.T, made map[string]bool) {
	t.Helper()
	for _, path := range glob(t, filepath.Join(goldens, "*", "*", "*.yaml")) {
		if made[path] {
			continue
		}
		if !*update {
			t.Errorf("%s: no example makes this; run make render-goldens", path)
			continue
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}
