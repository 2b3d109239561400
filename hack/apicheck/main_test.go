// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	spec := filepath.Join("facts", "testdata", "openapi.yaml")
	file := filepath.Join(t.TempDir(), "facts.yaml")
	out := &strings.Builder{}
	if err := (&cli{Spec: spec, Facts: file, Write: true}).run(out); err != nil {
		t.Fatalf("run(...) to write: %v", err)
	}
	if err := (&cli{Spec: spec, Facts: file}).run(out); err != nil {
		t.Errorf("run(...) of the same facts: %v", err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(b), "sail|row", "sail")), 0o600); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if err := (&cli{Spec: spec, Facts: file}).run(out); err == nil {
		t.Error("run(...) of other facts: want an error")
	}
	if !strings.Contains(out.String(), "sail|row") {
		t.Errorf("run(...) of other facts: the difference is not shown: %s", out)
	}
}
