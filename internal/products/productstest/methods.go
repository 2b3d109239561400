// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package productstest checks the binaries of products.
package productstest

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
)

// CheckMethods fails the test of a product's main package if the linker keeps the methods of its binary that nothing
// calls. It does so when a function that is used finds methods by names that are not constants, such as those of
// text/template and of kong: it marks the function with ReflectMethod (markReflectMethod in the Go linker's
// src/cmd/link/internal/ld/deadcode.go).
func CheckMethods(t *testing.T, product string) {
	t.Helper()
	i := slices.IndexFunc(products.All(), func(p products.Product) bool { return p.Name == product })
	if i < 0 {
		t.Fatalf("there is no product %q", product)
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-dumpdep",
		"-tags="+strings.Join(products.All()[i].Tags, ","), "-o", filepath.Join(t.TempDir(), product), ".")
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0") // As the builder of packages compiles.
	// Symbols that are used, each with those that it uses.
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	lines := bytes.Split(out, []byte("\n"))
	if len(lines) < 1000 {
		t.Fatalf("the linker lists the uses of %d symbols only", len(lines))
	}
	for _, l := range lines {
		if bytes.Contains(l, []byte("ReflectMethod>")) {
			t.Errorf("A function that finds methods by name makes the linker keep all; do not use it: %s", l)
			return
		}
	}
}
