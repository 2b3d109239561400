// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package receivers

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
)

const root = "../.."

// module begins the paths of the product's packages.
const module = products.Module + "/"

// limit is the number of methods that a type may not reach, with those of the types that it embeds.
const limit = 30

// folders are those of the product.
var folders = []string{"apis", "cmd", "extension", "functions", "hack", "internal", "package"}

// exceptions are the types that reach the limit, each with the reason.
var exceptions = map[string]string{
	"extension/gateways.Controller":           "It reads, plans and writes, and embeds a type for the first and one for the last.",
	"extension/hooks.policyApplier":           "It inserts routes into a translation, and adds clusters to it.",
	"extension/index.view":                    "It sees all objects, and remembers for which ones it looked.",
	"internal/controller/vipservice.external": "Crossplane's client of an object has four calls, each of which has many steps.",
	"internal/controller/vipservice.sharing":  "An object that shares its service is observed as others are, too.",
	"internal/tailnetsim.Server":              "The simulator of tests has one state, and Tailscale's API has many calls.",
	"internal/tailnetsim/simtest.Running":     "It is a simulator that listens.",
}

// A methodSet is what the files of the product say about methods.
type methodSet struct {
	// own are the names of the methods of a type, and embedded the types of the product that it embeds.
	own      map[string]map[string]bool
	embedded map[string][]string
}

func newMethodSet() methodSet {
	return methodSet{own: map[string]map[string]bool{}, embedded: map[string][]string{}}
}

// add adds the methods and the types of a file.
func (m methodSet) add(pkg string, f *ast.File) {
	if ast.IsGenerated(f) {
		return
	}
	imports := importsOf(f)
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				continue
			}
			name := pkg + "." + typeName(d.Recv.List[0].Type)
			if m.own[name] == nil {
				m.own[name] = map[string]bool{}
			}
			m.own[name][d.Name.Name] = true
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if t, ok := spec.(*ast.TypeSpec); ok {
					m.embedded[pkg+"."+t.Name.Name] = embeds(t.Type, pkg, imports)
				}
			}
		}
	}
}

// importsOf returns the product's packages that a file imports, by their names in the file.
func importsOf(f *ast.File) map[string]string {
	out := map[string]string{}
	for _, i := range f.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		p, ok := strings.CutPrefix(p, module)
		if err != nil || !ok {
			continue
		}
		name := path.Base(p)
		if i.Name != nil {
			name = i.Name.Name
		}
		out[name] = p
	}
	return out
}

// embeds returns the types of the product that a struct embeds.
func embeds(e ast.Expr, pkg string, imports map[string]string) []string {
	s, ok := e.(*ast.StructType)
	if !ok {
		return nil
	}
	var out []string
	for _, f := range s.Fields.List {
		if len(f.Names) > 0 {
			continue
		}
		t := f.Type
		if p, ok := t.(*ast.StarExpr); ok {
			t = p.X
		}
		switch g := t.(type) {
		case *ast.IndexExpr:
			t = g.X
		case *ast.IndexListExpr:
			t = g.X
		}
		if sel, ok := t.(*ast.SelectorExpr); ok {
			if p, ok := imports[typeName(sel.X)]; ok {
				out = append(out, p+"."+sel.Sel.Name)
			}
			continue
		}
		out = append(out, pkg+"."+typeName(t))
	}
	return out
}

// names returns the names of the methods of a type, with those of the types that it embeds.
func (m methodSet) names(t string) map[string]bool {
	out, seen := map[string]bool{}, map[string]bool{}
	for all := []string{t}; len(all) > 0; all = all[1:] {
		// Types may embed pointers to each other.
		if !seen[all[0]] {
			seen[all[0]] = true
			maps.Copy(out, m.own[all[0]])
			all = append(all, m.embedded[all[0]]...)
		}
	}
	return out
}

// typeName returns the name of a receiver's type.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.ParenExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// tooMany returns the types that reach the limit, sorted. A type without own methods answers
// nothing: it joins others, such as the areas of an API for an interface.
func (m methodSet) tooMany() []string {
	var out []string
	for name := range m.own {
		if len(m.names(name)) >= limit {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// TestMethods checks that no type of the product reaches the limit, and that no exception is left over.
func TestMethods(t *testing.T) {
	methods := newMethodSet()
	for _, folder := range folders {
		err := fs.WalkDir(os.DirFS(root), folder, func(file string, _ fs.DirEntry, err error) error {
			if err != nil || path.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			methods.add(path.Dir(file), f)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	found := methods.tooMany()
	for _, name := range found {
		if exceptions[name] == "" {
			t.Errorf("%s has %d methods: move a part of what it knows to another type, or to functions", name, len(methods.names(name)))
		}
	}
	for name := range exceptions {
		if !slices.Contains(found, name) {
			t.Errorf("%s has %d methods and is still an exception", name, len(methods.names(name)))
		}
	}
}

// TestTooMany checks what counts as a method of a type.
func TestTooMany(t *testing.T) {
	methods := func(receiver string, from, to int) string {
		out := &strings.Builder{}
		for i := from; i < to; i++ {
			fmt.Fprintf(out, "func (t %s) m%d() {}\n", receiver, i)
		}
		return out.String()
	}
	cases := map[string]struct {
		reason string
		// sources by the packages of the product.
		sources map[string]string
		want    []string
	}{
		"Pointers": {
			reason:  "Methods of values and of pointers are of one type.",
			sources: map[string]string{"a": "package a\n" + methods("T", 0, limit/2) + methods("*T", limit/2, limit)},
			want:    []string{"a.T"},
		},
		"Generic": {
			reason:  "The parameters of a type do not count.",
			sources: map[string]string{"a": "package a\n" + methods("*T[K, V]", 0, limit)},
			want:    []string{"a.T"},
		},
		"Fewer": {
			reason:  "Functions do not count.",
			sources: map[string]string{"a": "package a\n" + methods("T", 0, limit-1) + "func m() {}\n"},
		},
		"Embedded": {
			reason: "The methods of embedded types are methods of the type, also of those in other packages, and in a circle.",
			sources: map[string]string{
				"a":   "package a\nimport b \"" + module + "x/y\"\ntype T struct{ *b.U[int]; V[int] }\ntype V[K any] struct{ *T }\n" + methods("T", 0, 1) + methods("V[K]", 1, 2),
				"x/y": "package y\ntype U[K any] struct{}\n" + methods("*U[K]", 2, limit),
			},
			want: []string{"a.T", "a.V"},
		},
		"Overridden": {
			reason:  "A method that replaces one of an embedded type is one method.",
			sources: map[string]string{"a": "package a\ntype T struct{ U }\ntype U struct{}\n" + methods("T", 0, 2) + methods("U", 0, limit-1)},
		},
		"Field": {
			reason:  "The methods of a field with a name are not those of the type.",
			sources: map[string]string{"a": "package a\ntype T struct{ u U }\ntype U struct{}\n" + methods("T", 0, 2) + methods("U", 2, limit)},
		},
		"Joined": {
			reason:  "A type without own methods joins others.",
			sources: map[string]string{"a": "package a\ntype T struct{ U; V }\ntype (U struct{}; V struct{})\n" + methods("U", 0, limit/2) + methods("V", limit/2, limit)},
		},
		"Generated": {
			reason:  "Nobody reads generated files.",
			sources: map[string]string{"a": "// Code generated by a test. DO NOT EDIT.\n\npackage a\n" + methods("T", 0, limit)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			all := newMethodSet()
			for pkg, source := range tc.sources {
				f, err := parser.ParseFile(token.NewFileSet(), "a.go", source, parser.ParseComments|parser.SkipObjectResolution)
				if err != nil {
					t.Fatal(err)
				}
				all.add(pkg, f)
			}
			if diff := cmp.Diff(tc.want, all.tooMany()); diff != "" {
				t.Errorf("\n%s\ntooMany(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
