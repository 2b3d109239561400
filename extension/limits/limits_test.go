// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const root = "../.."

// TestTable checks that the table has each limit of this package, with a test that exists and a row
// in docs/limits.md, and that nobody can read about a limit that does not exist.
func TestTable(t *testing.T) {
	t.Parallel()
	var names, rows []string
	for _, l := range Table() {
		names = append(names, l.Name)
		rows = append(rows, l.Row())
		if !tested(t, l) {
			t.Errorf("%s: %s has no %s", l.Name, l.Package, l.Test)
		}
	}
	slices.Sort(names)
	if diff := cmp.Diff(constants(t), names); diff != "" {
		t.Errorf("The table should have each limit once: -constants, +table\n%s", diff)
	}
	if diff := cmp.Diff(documented(t), rows); diff != "" {
		t.Errorf("docs/limits.md should have the table's rows: -docs, +table\n%s", diff)
	}
}

// constants returns the sorted names of the package's exported constants.
func constants(t *testing.T) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "limits.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v, ok := s.(*ast.ValueSpec)
			if !ok {
				continue
			}
			for _, n := range v.Names {
				if n.IsExported() {
					out = append(out, n.Name)
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// tested reports whether the test of a limit exists.
func tested(t *testing.T, l Limit) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, l.Package, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(f string) bool {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(b), "func "+l.Test+"(t *testing.T)")
	})
}

// documented returns the rows of the table that follows the heading of docs/limits.md.
func documented(t *testing.T) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, "docs", "limits.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(b), "\n## Shares of the extension\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var out []string
	for line := range strings.SplitSeq(section, "\n") {
		if strings.HasPrefix(line, "| ") {
			out = append(out, line)
		}
	}
	return slices.Delete(out, 0, min(1, len(out)))
}
