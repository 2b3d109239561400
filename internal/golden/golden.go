// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package golden compares what a test makes with files, and rewrites the files when the test
// runs with -update. It shortens objects so that a person can review the files: see Digests,
// Condition and Reference. It is for tests only.
package golden

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "Rewrite golden files from what the tests make, and delete those that no test makes.")

// Updating reports whether the test rewrites its golden files.
func Updating() bool { return *update }

// Compare fails the test unless the file at a path contains actual. With -update it writes the
// file. Where actual contains digests that the file lacks, the failure shows their objects. A failure
// for want of a file shows all of actual.
func Compare(t *testing.T, path string, actual []byte, digests *Digests) {
	t.Helper()
	want, err := os.ReadFile(path)
	if *update {
		if err == nil && bytes.Equal(want, actual) {
			return
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, actual, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err != nil {
		t.Errorf("%v; run the test with -update. It would contain:\n%s", err, actual)
		return
	}
	reportDiff(t, path, want, actual, digests)
}

// reportDiff fails the test for a difference between what a file contains and what the test made.
func reportDiff(t *testing.T, path string, want, actual []byte, digests *Digests) {
	t.Helper()
	if diff := cmp.Diff(string(want), string(actual)); diff != "" {
		t.Errorf("%s: -want, +got:\n%s%s", path, diff, digests.explain(string(want), string(actual)))
	}
}

// CompareSums fails the test unless the file at a path has the SHA-256 digests of files, in the format of
// sha256sum. A change of a large file that others determine shows in one line; "go run ./package/derive" writes the
// files themselves.
func CompareSums(t *testing.T, path string, files map[string][]byte) {
	t.Helper()
	out := &bytes.Buffer{}
	for _, f := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(out, "%x  %s\n", sha256.Sum256(files[f]), f)
	}
	Compare(t, path, out.Bytes(), nil)
	if t.Failed() {
		t.Log("go run ./package/derive writes the files to _out/derived: compare those of two commits")
	}
}

// Prune fails the test for each file that matches a pattern and that no test made. With -update
// it deletes the file.
func Prune(t *testing.T, pattern string, generated map[string]bool) {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		switch {
		case generated[path]:
		case !*update:
			t.Errorf("%s: no test makes this; run the tests with -update", path)
		default:
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// digested are the kinds of which most golden files contain digests only: nearly all of such an
// object follows from its name, and a few cases of each suite contain it in full.
var digested = map[string]bool{
	"Deployment":          true,
	"NetworkPolicy":       true,
	"PodDisruptionBudget": true,
	"Role":                true,
	"RoleBinding":         true,
	"Service":             true,
	"ServiceAccount":      true,
	"StatefulSet":         true,
}

// Digests shortens objects and remembers them, so that a failing test can show them in full.
// The zero value is ready for use.
type Digests struct {
	objects map[string]string
}

// Of returns an object's kind, name and digest on one line. It returns false for an object of a
// kind that golden files contain in full.
func (d *Digests) Of(t *testing.T, object map[string]any) (string, bool) {
	t.Helper()
	o := &unstructured.Unstructured{Object: object}
	if !digested[o.GetKind()] {
		return "", false
	}
	text, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	digest := "sha256:" + hex.EncodeToString(sum[:16])
	if d.objects == nil {
		d.objects = map[string]string{}
	}
	d.objects[digest] = string(text)
	return fmt.Sprintf("%s %s %s", o.GetKind(), strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/"), digest), true
}

// digestPattern matches what Of writes.
var digestPattern = regexp.MustCompile(`sha256:[0-9a-f]+`)

// explain returns the objects whose digests are in actual and not in want.
func (d *Digests) explain(want, actual string) string {
	if d == nil {
		return ""
	}
	var out strings.Builder
	for _, digest := range digestPattern.FindAllString(actual, -1) {
		if text, ok := d.objects[digest]; ok && !strings.Contains(want, digest) {
			fmt.Fprintf(&out, "%s, which is new, is of:\n%s\n", digest, text)
		}
	}
	return out.String()
}

// Condition returns a status condition on one line. A time is not part of it.
func Condition(c map[string]any) string {
	return strings.TrimSuffix(fmt.Sprintf("%v=%v %v: %v", c["type"], c["status"], c["reason"], valueOr(c["message"], "")), ": ")
}

// Reference returns a reference to an object on one line.
func Reference(r map[string]any) string {
	name := fmt.Sprint(r["name"])
	if n, ok := r["namespace"]; ok {
		name = fmt.Sprintf("%v/%s", n, name)
	}
	return fmt.Sprintf("%v %v %s", r["apiVersion"], r["kind"], name)
}

// valueOr returns a value, or another one in place of nil.
func valueOr(v, other any) any {
	if v == nil {
		return other
	}
	return v
}
