// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// client is the package that creates metrics.
const client = "github.com/prometheus/client_golang/prometheus"

// Types of metrics.
const (
	counter   = "counter"
	gauge     = "gauge"
	histogram = "histogram"
	summary   = "summary"
)

// sources returns the folders of packages.
func sources(patterns ...[]string) ([]string, error) {
	cmd := exec.Command("go", append([]string{"list", "-f", "{{.Dir}}"}, slices.Concat(patterns...)...)...) //nolint:noctx // A tool of developers, which they can interrupt.
	cmd.Stderr = os.Stderr
	b, err := cmd.Output()
	if err != nil {
		return nil, errors.Wrap(err, "cannot list packages")
	}
	return strings.Fields(string(b)), nil
}

// scanDir adds the types of the metrics that a package creates, by name. A Desc does not contain
// the type of its metric.
func scanDir(dir string, types map[string]string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return errors.Wrap(err, "cannot list files")
	}
	s := &scan{fset: token.NewFileSet(), constants: map[string]string{}, descs: map[string]string{}, used: map[string]string{}, types: types}
	var parsed []*ast.File
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(s.fset, f, nil, 0)
		if err != nil {
			return errors.Wrap(err, "cannot parse source")
		}
		parsed = append(parsed, file)
	}
	return s.files(parsed)
}

// A scan finds the metrics of one package.
type scan struct {
	fset *token.FileSet

	// constants are the package's string constants.
	constants map[string]string

	// descs are the names of metrics, by the variable of their Desc.
	descs map[string]string

	// used are the types with which variables of type Desc are used.
	used map[string]string

	types map[string]string
}

func (s *scan) files(files []*ast.File) error {
	for _, f := range files {
		s.addConstants(f)
	}
	for _, f := range files {
		alias := importName(f, client)
		if alias == "" {
			continue
		}
		if err := s.metrics(f, alias); err != nil {
			return err
		}
		s.uses(f, alias)
	}
	for v, name := range s.descs {
		kind, ok := s.used[v]
		if !ok {
			return errors.Errorf("no call shows the type of metric %q of variable %s", name, v)
		}
		s.types[name] = kind
	}
	return nil
}

// importName returns the name of an imported package in a file, or an empty string.
func importName(f *ast.File, path string) string {
	for _, i := range f.Imports {
		if imported, err := strconv.Unquote(i.Path.Value); err != nil || imported != path {
			continue
		}
		if i.Name != nil {
			return i.Name.Name
		}
		return path[strings.LastIndex(path, "/")+1:]
	}
	return ""
}

func (s *scan) addConstants(f *ast.File) {
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, spec := range g.Specs {
			v, ok := spec.(*ast.ValueSpec)
			if !ok || len(v.Values) != len(v.Names) {
				continue
			}
			for i, n := range v.Names {
				if text, ok := literal(v.Values[i]); ok {
					s.constants[n.Name] = text
				}
			}
		}
	}
}

func literal(e ast.Expr) (string, bool) {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(l.Value)
	return text, err == nil
}

// text returns the value of a string expression.
func (s *scan) text(e ast.Expr) (string, error) {
	if t, ok := literal(e); ok {
		return t, nil
	}
	if id, ok := e.(*ast.Ident); ok {
		if t, ok := s.constants[id.Name]; ok {
			return t, nil
		}
	}
	return "", errors.Errorf("%s: the name of a metric must be a literal or a constant of the package", s.fset.Position(e.Pos()))
}

// metrics adds the metrics that a file creates.
func (s *scan) metrics(f *ast.File, alias string) error {
	var failed error
	ast.Inspect(f, func(n ast.Node) bool {
		if failed != nil {
			return false
		}
		switch n := n.(type) {
		case *ast.CallExpr:
			failed = s.created(n, alias)
		case *ast.ValueSpec:
			for i, v := range n.Values {
				failed = errors.Join(failed, s.desc(n.Names[i], v, alias))
			}
		case *ast.AssignStmt:
			for i, v := range n.Rhs {
				failed = errors.Join(failed, s.desc(n.Lhs[min(i, len(n.Lhs)-1)], v, alias))
			}
		}
		return true
	})
	return failed
}

// created adds the metric of a call such as prometheus.NewCounterVec.
func (s *scan) created(c *ast.CallExpr, alias string) error {
	fn := callee(c, alias)
	kind := kindOf(fn)
	if kind == "" || len(c.Args) == 0 {
		return nil
	}
	opts, ok := c.Args[0].(*ast.CompositeLit)
	if !ok {
		return errors.Errorf("%s: the options of %s must be a literal", s.fset.Position(c.Pos()), fn)
	}
	parts := map[string]string{}
	for _, e := range opts.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		key, ok := kv.Key.(*ast.Ident)
		if !ok || !slices.Contains([]string{"Namespace", "Subsystem", "Name"}, key.Name) {
			continue
		}
		t, err := s.text(kv.Value)
		if err != nil {
			return err
		}
		parts[key.Name] = t
	}
	name := strings.Join(slices.DeleteFunc([]string{parts["Namespace"], parts["Subsystem"], parts["Name"]}, func(p string) bool { return p == "" }), "_")
	s.types[name] = kind
	return nil
}

// desc records that a variable holds a Desc.
func (s *scan) desc(target, value ast.Expr, alias string) error {
	c, ok := value.(*ast.CallExpr)
	if !ok || callee(c, alias) != "NewDesc" || len(c.Args) == 0 {
		return nil
	}
	v := variable(target)
	if v == "" {
		return errors.Errorf("%s: a Desc must be in a variable", s.fset.Position(c.Pos()))
	}
	name, err := s.text(c.Args[0])
	s.descs[v] = name
	return err
}

// uses records the types with which Descs are used: in calls of prometheus, and of functions of
// the file that pass a parameter to it.
func (s *scan) uses(f *ast.File, alias string) {
	wrappers := map[string]string{}
	named := func(name string, params *ast.FieldList, body *ast.BlockStmt) {
		ast.Inspect(body, func(n ast.Node) bool {
			if c, ok := n.(*ast.CallExpr); ok {
				if kind, v := constOf(c, alias); kind != "" && first(params) == v {
					wrappers[name] = kind
				}
			}
			return true
		})
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Body != nil {
				named(n.Name.Name, n.Type.Params, n.Body)
			}
		case *ast.AssignStmt:
			if l, ok := n.Rhs[0].(*ast.FuncLit); ok && variable(n.Lhs[0]) != "" {
				named(variable(n.Lhs[0]), l.Type.Params, l.Body)
			}
		}
		return true
	})
	ast.Inspect(f, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if !ok || len(c.Args) == 0 {
			return true
		}
		kind, v := constOf(c, alias)
		if kind == "" {
			kind, v = wrappers[variable(c.Fun)], variable(c.Args[0])
		}
		if kind != "" && v != "" {
			s.used[v] = kind
		}
		return true
	})
}

// constOf returns the type and the variable of the Desc of a call such as
// prometheus.MustNewConstMetric.
func constOf(c *ast.CallExpr, alias string) (kind, desc string) {
	fn := strings.TrimPrefix(callee(c, alias), "Must")
	if len(c.Args) < 2 {
		return "", ""
	}
	switch {
	case fn == "NewConstMetric":
		s, ok := c.Args[1].(*ast.SelectorExpr)
		if !ok {
			return "", ""
		}
		return map[string]string{"CounterValue": counter, "GaugeValue": gauge}[s.Sel.Name], variable(c.Args[0])
	case strings.HasPrefix(fn, "NewConst"):
		return kindOf(strings.Replace(fn, "Const", "", 1)), variable(c.Args[0])
	}
	return "", ""
}

// callee returns the function of a package that a call calls, or an empty string.
func callee(c *ast.CallExpr, alias string) string {
	s, ok := c.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if id, ok := s.X.(*ast.Ident); !ok || id.Name != alias {
		return ""
	}
	return s.Sel.Name
}

// kindOf returns the type of metric that a function such as NewCounterVec creates.
func kindOf(fn string) string {
	for prefix, kind := range map[string]string{"NewCounter": counter, "NewGauge": gauge, "NewHistogram": histogram, "NewSummary": summary} {
		if rest, ok := strings.CutPrefix(fn, prefix); ok && slices.Contains([]string{"", "Vec", "Func"}, rest) {
			return kind
		}
	}
	return ""
}

// variable returns the name of a variable or field, or an empty string.
func variable(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// first returns the name of the first parameter, or an empty string.
func first(params *ast.FieldList) string {
	if len(params.List) == 0 || len(params.List[0].Names) == 0 {
		return ""
	}
	return params.List[0].Names[0].Name
}
