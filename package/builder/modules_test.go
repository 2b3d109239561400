// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// dragged are modules that only the libraries for packages bring.
var dragged = []string{"github.com/sigstore/", "github.com/Azure/", "cloud.google.com/", "github.com/awslabs/", "github.com/google/go-containerregistry/pkg/authn/"}

// TestModules checks that the module of our binaries requires nothing that only this one needs,
// and that it has one sorted block of direct requirements and one of indirect requirements.
func TestModules(t *testing.T) {
	b, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	f, err := modfile.Parse("go.mod", b, nil)
	if err != nil {
		t.Fatal(err)
	}
	blocks := map[int]bool{} // The first lines of blocks, and whether a block is of indirect requirements.
	for _, r := range f.Require {
		for _, d := range dragged {
			if strings.HasPrefix(r.Mod.Path, d) {
				t.Errorf("go.mod requires %s", r.Mod.Path)
			}
		}
	}
	for _, s := range f.Syntax.Stmt {
		block, ok := s.(*modfile.LineBlock)
		if !ok || block.Token[0] != "require" {
			continue
		}
		var paths []string
		indirect := map[bool]bool{}
		for _, l := range block.Line {
			paths = append(paths, l.Token[0])
			indirect[slices.ContainsFunc(l.Suffix, func(c modfile.Comment) bool { return strings.Contains(c.Token, "indirect") })] = true
		}
		if !slices.IsSorted(paths) {
			t.Errorf("the requirements in line %d and below are not sorted", block.Start.Line)
		}
		if len(indirect) > 1 {
			t.Errorf("the block in line %d has direct and indirect requirements", block.Start.Line)
		}
		blocks[block.Start.Line] = indirect[true]
	}
	if len(blocks) != 2 {
		t.Errorf("go.mod has %d blocks of requirements, want one of direct and one of indirect ones", len(blocks))
	}
}
