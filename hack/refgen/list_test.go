// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestAnchors checks that each anchor of a reference page is there once, and that each name of a field
// leads to its own.
func TestAnchors(t *testing.T) {
	names, err := filepath.Glob(filepath.Join("..", "..", "docs", "reference", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	entry := regexp.MustCompile(`<a id="([^"]*)" href="#([^"]*)">`)
	total := 0
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, m := range entry.FindAllStringSubmatch(string(b), -1) {
			total++
			if seen[m[1]] {
				t.Errorf("%s has the anchor %q twice", name, m[1])
			}
			seen[m[1]] = true
			if m[1] != m[2] {
				t.Errorf("%s: the field %q leads to %q", name, m[1], m[2])
			}
		}
	}
	if minimum := 1000; total < minimum {
		t.Errorf("found %d fields, want at least %d", total, minimum)
	}
}
