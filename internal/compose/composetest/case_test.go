// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package composetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// config returns a ConfigMap with a name and data, one pair a line.
func config(name string, data ...string) map[string]any {
	m := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "shop"}}
	if len(data) > 0 {
		values := map[string]any{}
		for _, d := range data {
			k, v, _ := strings.Cut(d, "=")
			values[k] = v
		}
		m["data"] = values
	}
	return m
}

func TestReadCase(t *testing.T) {
	const id = "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: shop, name: "
	const base = prefixLicense + "# All\n# is there.\n" + id + "a}\ndata: {x: one, w: two}\n---\n" + id + "b}\n"
	cases := map[string]struct {
		reason string
		text   string
		want   *Case
		err    string
	}{
		"Whole": {
			reason: "A case without a base has the objects of its file.",
			text:   prefixLicense + "# It is\n# short.\n" + id + "a}\n",
			want:   &Case{Reason: "It is short.", Objects: []map[string]any{config("a")}},
		},
		"Patch": {
			reason: "Null deletes a field, and the other objects stay as they are.",
			text:   prefixLicense + "# No w.\n# base: base\n" + id + "a}\ndata: {x: three, w: null}\n",
			want:   &Case{Reason: "No w.", Base: "base", Objects: []map[string]any{config("a", "x=three"), config("b")}},
		},
		"Add": {
			reason: "An object that the base lacks comes last.",
			text:   prefixLicense + "# One more.\n# base: base\n" + id + "c}\n",
			want:   &Case{Reason: "One more.", Base: "base", Objects: []map[string]any{config("a", "x=one", "w=two"), config("b"), config("c")}},
		},
		"Delete": {
			reason: "A document can delete an object.",
			text:   prefixLicense + "# One less.\n# base: base\n" + id + "b}\n$patch: delete\n",
			want:   &Case{Reason: "One less.", Base: "base", Objects: []map[string]any{config("a", "x=one", "w=two")}},
		},
		"Same": {
			reason: "A case may have the same objects as its base: the file names another reason.",
			text:   prefixLicense + "# Again.\n# base: base\n",
			want:   &Case{Reason: "Again.", Base: "base", Objects: []map[string]any{config("a", "x=one", "w=two"), config("b")}},
		},
		"NoReason":       {reason: "A reader has to know why there is a case.", text: prefixLicense + id + "a}\n", err: "reason"},
		"NoEffect":       {reason: "A patch has to change something.", text: prefixLicense + "# R.\n# base: base\n" + id + "b}\n", err: "no effect"},
		"PartNoEffect":   {reason: "Each line of a patch has to change something.", text: prefixLicense + "# R.\n# base: base\n" + id + "a}\ndata: {x: one, w: three}\n", err: "parts of the patch"},
		"NullOfNothing":  {reason: "A field that is not there cannot be deleted.", text: prefixLicense + "# R.\n# base: base\n" + id + "a}\ndata: {z: null}\n", err: "no effect"},
		"DeleteNothing":  {reason: "An object that is not there cannot be deleted.", text: prefixLicense + "# R.\n# base: base\n" + id + "c}\n$patch: delete\n", err: "does not have the object"},
		"DeleteAndPatch": {reason: "A deleted object has no other fields.", text: prefixLicense + "# R.\n# base: base\n" + id + "b}\ndata: {x: one}\n$patch: delete\n", err: "want only"},
		"Composite":      {reason: "A case needs a composite.", text: prefixLicense + "# R.\n# base: base\n" + id + "a}\n$patch: delete\n", err: "composite"},
		"Twice":          {reason: "It would be unclear which object a patch is for.", text: prefixLicense + "# R.\n" + id + "a}\n---\n" + id + "a}\n", err: "twice"},
		"Nested":         {reason: "A reader looks into two files at most.", text: prefixLicense + "# R.\n# base: nested\n" + id + "c}\n", err: "itself"},
		"NoBase":         {reason: "The base must exist.", text: prefixLicense + "# R.\n# base: none\n" + id + "c}\n", err: "none"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range map[string]string{"base": base, "nested": prefixLicense + "# R.\n# base: base\n" + id + "c}\n", "case": tc.text} {
				if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := readCase(filepath.Join(dir, "case.yaml"))
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("\n%s\nreadCase(...): want an error with %q, got %v", tc.reason, tc.err, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("\n%s\nreadCase(...): %v", tc.reason, err)
			}
			tc.want.Name = "case"
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nreadCase(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
