// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaled

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tailscale.com/ipn"
	"tailscale.com/kube/egressservices"
	"tailscale.com/kube/ingressservices"

	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
)

// root is the root of the repository.
const root = "../.."

// structs are the types of tailscale.com by which proxies are configured.
var structs = []reflect.Type{
	reflect.TypeFor[ipn.ConfigVAlpha](), reflect.TypeFor[ipn.ServeConfig](), reflect.TypeFor[ipn.ServiceConfig](),
	reflect.TypeFor[ipn.TCPPortHandler](), reflect.TypeFor[ipn.WebServerConfig](), reflect.TypeFor[ipn.HTTPHandler](),
	reflect.TypeFor[ipn.Prefs](), reflect.TypeFor[ipn.MaskedPrefs](),
	reflect.TypeFor[ingressservices.Config](), reflect.TypeFor[ingressservices.Mapping](),
	reflect.TypeFor[egressservices.Config](), reflect.TypeFor[egressservices.TailnetTarget](), reflect.TypeFor[egressservices.PortMap](),
}

// variables matches the variables of tailscaled and containerboot.
var variables = regexp.MustCompile(`^(TS_[A-Z0-9_]+|PORT|POD_IPS?|POD_UID)$`)

// sources calls fn with each file of the product that runs or configures proxies.
func sources(t *testing.T, fn func(path string, f *ast.File)) {
	t.Helper()
	for _, dir := range []string{"internal/agent", "internal/controller", "internal/proxy", "cmd/agent"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() && d.Name() == "localapitest" {
				return errOr(err, filepath.SkipDir)
			}
			if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err == nil {
				fn(path, f)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func errOr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// fieldsSet returns the fields of the structs that a file sets: in composite literals, by assignments,
// and by their names in JSON. Without types, an assignment to a field of the same name counts.
func fieldsSet(f *ast.File) map[string]bool {
	out, mentioned := map[string]bool{}, map[string]reflect.Type{}
	ast.Inspect(f, func(n ast.Node) bool {
		if x, ok := n.(*ast.SelectorExpr); ok {
			if pkg, ok := x.X.(*ast.Ident); ok {
				for _, s := range structs {
					if s.String() == pkg.Name+"."+x.Sel.Name {
						mentioned[s.String()] = s
					}
				}
			}
		}
		return true
	})
	// A literal of a slice or a map of a struct mentions only the outer type.
	for _, s := range []reflect.Type{reflect.TypeFor[egressservices.PortMap](), reflect.TypeFor[egressservices.TailnetTarget]()} {
		if mentioned[reflect.TypeFor[egressservices.Config]().String()] != nil {
			mentioned[s.String()] = s
		}
	}
	set := func(name string) {
		for _, s := range mentioned {
			if field, ok := s.FieldByName(name); ok && len(field.Index) == 1 {
				out[s.String()+"."+name] = true
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.CompositeLit:
			for _, e := range x.Elts {
				kv, ok := e.(*ast.KeyValueExpr)
				if !ok {
					continue
				}
				key, ok := kv.Key.(*ast.Ident)
				if sel, typed := x.Type.(*ast.SelectorExpr); ok && typed {
					if s := mentioned[types.ExprString(sel)]; s != nil {
						out[s.String()+"."+key.Name] = true
					}
				} else if ok && x.Type == nil {
					set(key.Name)
				}
			}
		case *ast.AssignStmt:
			for _, target := range x.Lhs {
				if sel, ok := target.(*ast.SelectorExpr); ok {
					set(sel.Sel.Name)
				}
			}
		case *ast.BasicLit:
			if text, err := strconv.Unquote(x.Value); err == nil && x.Kind == token.STRING {
				set(text)
			}
		}
		return true
	})
	return out
}

// TestSettingsComplete checks that each setting of proxies has a row, and that each row is one.
func TestSettingsComplete(t *testing.T) {
	used := map[string]string{}
	sources(t, func(path string, f *ast.File) {
		for name := range fieldsSet(f) {
			used[name] = path
		}
		if filepath.Base(filepath.Dir(path)) != "proxy" {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if x, ok := n.(*ast.BasicLit); ok && x.Kind == token.STRING {
				if text, err := strconv.Unquote(x.Value); err == nil && variables.MatchString(text) {
					used[text] = path
				}
			}
			return true
		})
	})
	rows := map[string]bool{}
	for _, s := range Settings() {
		if rows[s.Name] {
			t.Errorf("%s has two rows", s.Name)
		}
		rows[s.Name] = true
		if used[s.Name] == "" {
			t.Errorf("no proxy has %s: remove the row", s.Name)
		}
		if _, ok := release(s.MinVersion); ok != (s.MinVersion != "") || ok != (s.Impact != "") {
			t.Errorf("%s: want a version and what happens without it, or neither: %+v", s.Name, s)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(used)) {
		if !rows[name] {
			t.Errorf("%s sets %s, which has no row: find the first version of tailscale.com that knows it", used[name], name)
		}
	}
}

// modules returns the folders of tailscale.com by version, as far as they are in the module cache. The
// default version always is.
func modules(t *testing.T) map[string]string {
	t.Helper()
	cache, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatalf("cannot find the module cache: %v", err)
	}
	dirs, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(cache)), "tailscale.com@v*"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, dir := range dirs {
		_, version, _ := strings.Cut(filepath.Base(dir), "@v")
		if _, ok := release(version); ok && Tested(version) {
			out[version] = dir
		}
	}
	_, pinned, _ := strings.Cut(products.Tailscale, ":v")
	if out[pinned] == "" {
		t.Fatalf("tailscale.com %s is not in the module cache", pinned)
	}
	return out
}

// has reports whether a module has a setting.
func has(t *testing.T, dir string, s Setting) bool {
	t.Helper()
	parts := strings.Split(s.Name, ".")
	if len(parts) == 3 {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, s.Source), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		ast.Inspect(f, func(n ast.Node) bool {
			x, ok := n.(*ast.TypeSpec)
			if !ok || x.Name.Name != parts[1] {
				return true
			}
			if st, ok := x.Type.(*ast.StructType); ok {
				for _, field := range st.Fields.List {
					found = found || slices.ContainsFunc(field.Names, func(n *ast.Ident) bool { return n.Name == parts[2] })
				}
			}
			return false
		})
		return found
	}
	for source := range strings.SplitSeq(s.Source, ",") {
		files, err := filepath.Glob(filepath.Join(dir, source, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if strings.HasSuffix(f, "_test.go") {
				continue
			}
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(b), `"`+s.Name+`"`) {
				return true
			}
		}
	}
	return false
}

// TestSettingsSince compares the rows with the sources of each version in the module cache.
func TestSettingsSince(t *testing.T) {
	for version, dir := range modules(t) {
		t.Run(version, func(t *testing.T) {
			for _, s := range Settings() {
				if got, want := has(t, dir, s), knows(version, s.Name); got != want {
					t.Errorf("%s in %s: want %t, got %t", s.Name, s.Source, want, got)
				}
			}
		})
	}
}

// TestSettingsTable checks that the page has the table.
func TestSettingsTable(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(root, "docs/compatibility.md"))
	if err != nil {
		t.Fatal(err)
	}
	if want := SettingsTable(); !strings.Contains(string(b), want) {
		t.Errorf("docs/compatibility.md must have this table:\n%s", want)
	}
}
