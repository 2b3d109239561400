// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package render

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// render renders a composite once, as "crossplane composition render" does.
func (k *kind) render(t *testing.T, xr *unstructured.Unstructured, observed, required []*unstructured.Unstructured) []byte {
	t.Helper()
	dir := t.TempDir()
	args := []string{
		"composition", "render",
		write(t, dir, "xr.yaml", xr), k.composition, tools.functions,
		"--crossplane-binary=" + tools.core, "--xrd=" + k.definition, "--include-full-xr", "--timeout=2m",
	}
	if len(observed) > 0 {
		args = append(args, "--observed-resources="+write(t, dir, "observed.yaml", observed...))
	}
	if len(required) > 0 {
		args = append(args, "--required-resources="+write(t, dir, "required.yaml", required...))
	}
	return crossplane(t, dir, args...)
}

// validate checks objects, as "crossplane resource validate" does. An object without a schema is an
// error, too.
func validate(t *testing.T, extensions []string, objects []byte) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "objects.yaml")
	if err := os.WriteFile(file, once(objects), 0o600); err != nil {
		t.Fatal(err)
	}
	crossplane(t, dir, "resource", "validate", strings.Join(extensions, ","), file,
		"--cache-dir="+tools.cache, "--crossplane-image="+crossplaneImage, "--error-on-missing-schemas", "--skip-success-results")
}

// once removes duplicate documents.
func once(objects []byte) []byte {
	var out bytes.Buffer
	seen := map[string]bool{}
	for _, doc := range strings.Split("\n"+string(objects), "\n---\n") {
		if doc = strings.TrimSpace(doc); doc != "" && !seen[doc] {
			seen[doc] = true
			out.WriteString("---\n" + doc + "\n")
		}
	}
	return out.Bytes()
}

// crossplane runs the command line with a separate home folder, so that it does not read a user's
// settings.
func crossplane(t *testing.T, home string, args ...string) []byte {
	t.Helper()
	var out, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), tools.crossplane, args...)
	// The process ends before garbage collection pays off.
	cmd.Env = append(os.Environ(), "HOME="+home, "GOGC=off")
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("crossplane %s: %v\n%s%s", strings.Join(args, " "), err, stderr.String(), out.String())
	}
	return out.Bytes()
}

// write writes objects to a file.
func write(t *testing.T, dir, name string, objects ...*unstructured.Unstructured) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, encode(t, objects...), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func encode(t *testing.T, objects ...*unstructured.Unstructured) []byte {
	t.Helper()
	var out bytes.Buffer
	for _, o := range objects {
		b, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("---\n")
		out.Write(b)
	}
	return out.Bytes()
}

// decode returns the objects of a file's text.
func decode(t *testing.T, b []byte) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for _, doc := range strings.Split("\n"+string(b), "\n---\n") {
		m := map[string]any{}
		if err := yaml.UnmarshalStrict([]byte(doc), &m); err != nil {
			t.Fatalf("%v in:\n%s", err, doc)
		}
		if len(m) > 0 {
			out = append(out, &unstructured.Unstructured{Object: m})
		}
	}
	return out
}

// read returns the objects of a file. A missing file has none.
func read(t *testing.T, path string) []*unstructured.Unstructured {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return decode(t, b)
}
