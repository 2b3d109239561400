// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
)

const (
	service = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 80}]}\n"
	changed = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 8080}]}\n"
	policy  = "apiVersion: example.org/v1\nkind: Policy\nmetadata: {name: a, namespace: shop}\nspec: {on: true}\n"
	other   = "apiVersion: v1\nkind: Secret\nmetadata: {name: b}\n"
)

// A folder with a source, and the changes that it applied.
type folder struct {
	t      *testing.T
	dir    string
	source *Source

	mu               sync.Mutex
	changed, removed []string
}

func newFolder(t *testing.T) *folder {
	t.Helper()
	s := runtime.NewScheme()
	if err := corev1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	f := &folder{t: t, dir: t.TempDir()}
	kinds := map[schema.GroupKind]bool{{Kind: "Service"}: true, {Group: "example.org", Kind: "Policy"}: true}
	f.source = NewSource(f.dir, s, kinds, func(changed, removed []client.Object) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.changed, f.removed = append(f.changed, describe(changed)...), append(f.removed, describe(removed)...)
	}, logging.NewNopLogger())
	return f
}

func describe(os []client.Object) []string {
	var out []string
	for _, o := range os {
		switch o := o.(type) {
		case *corev1.Service:
			out = append(out, o.Namespace+"/"+o.Name+" typed")
		case *unstructured.Unstructured:
			out = append(out, o.GetNamespace()+"/"+o.GetName()+" "+o.GetKind())
		}
	}
	return out
}

func (f *folder) write(name, content string) {
	f.t.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, name), []byte(content), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// applied returns the changes since its last call.
func (f *folder) applied() (changed, removed []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	changed, removed = f.changed, f.removed
	f.changed, f.removed = nil, nil
	return changed, removed
}

func TestRead(t *testing.T) {
	cases := map[string]struct {
		reason string
		files  map[string]string
		want   []string
		err    bool
	}{
		"Empty": {
			reason: "An empty folder should be no error.",
		},
		"Kinds": {
			reason: "Objects of the given kinds should be applied, typed if there is a type, and sorted; others should not.",
			files:  map[string]string{"b.yaml": service + "---\n" + other, "a.yml": policy, "c.txt": "nonsense: ["},
			want:   []string{"default/web typed", "shop/a Policy"},
		},
		"EmptyDocuments": {
			reason: "Separators and comments should not count.",
			files:  map[string]string{"a.yaml": "# nothing\n---\n---\n" + service + "---\n"},
			want:   []string{"default/web typed"},
		},
		"JSON": {
			reason: "JSON is YAML.",
			files:  map[string]string{"a.yaml": `{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"}}`},
			want:   []string{"shop/web typed"},
		},
		"ErrYAML": {
			reason: "A file that is no YAML should be an error.",
			files:  map[string]string{"a.yaml": "a: ["},
			err:    true,
		},
		"ErrType": {
			reason: "An object that does not match its type should be an error.",
			files:  map[string]string{"a.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: 7}\n"},
			err:    true,
		},
		"ErrName": {
			reason: "An object without a name should be an error.",
			files:  map[string]string{"a.yaml": "apiVersion: v1\nkind: Service\n"},
			err:    true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFolder(t)
			for n, content := range tc.files {
				f.write(n, content)
			}
			if err := f.source.read(); (err != nil) != tc.err {
				t.Fatalf("\n%s\nread(): want error %t, got %v", tc.reason, tc.err, err)
			}
			if diff := cmp.Diff(tc.want, f.changed); diff != "" {
				t.Errorf("\n%s\nread(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFolder(t)
		f.write("a.yaml", service)
		f.write("b.yaml", policy)

		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- f.source.Start(ctx) }()
		<-f.source.Synced()
		first, _ := f.applied()
		if diff := cmp.Diff([]string{"default/web typed", "shop/a Policy"}, first); diff != "" {
			t.Errorf("at first: -want, +got:\n%s", diff)
		}

		steps := []struct {
			reason           string
			action           func()
			changed, removed []string
		}{
			{reason: "Without a change nothing should be applied.", action: func() {}},
			{reason: "Only the change should be applied.", action: func() { f.write("a.yaml", changed) }, changed: []string{"default/web typed"}},
			{reason: "A rewritten file with the same objects should be no change.", action: func() { f.write("b.yaml", policy+"\n") }},
			{reason: "An invalid file should change nothing.", action: func() { f.write("b.yaml", "a: [") }},
			{reason: "A corrected file should be read.", action: func() { f.write("b.yaml", other) }, removed: []string{"shop/a Policy"}},
			{reason: "A removed file should remove its objects.", action: func() {
				if err := os.Remove(filepath.Join(f.dir, "a.yaml")); err != nil {
					t.Fatal(err)
				}
			}, removed: []string{"default/web typed"}},
		}
		for _, s := range steps {
			s.action()
			<-time.After(2 * interval)
			synctest.Wait()
			changed, removed := f.applied()
			if diff := cmp.Diff(s.changed, changed); diff != "" {
				t.Errorf("\n%s\nchanged: -want, +got:\n%s", s.reason, diff)
			}
			if diff := cmp.Diff(s.removed, removed); diff != "" {
				t.Errorf("\n%s\ngone: -want, +got:\n%s", s.reason, diff)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
