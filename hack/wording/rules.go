// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A finding is a text that does not follow the rules.
type finding struct {
	path    string
	line    int
	message string
}

// A banned expression and what to write instead.
type banned struct {
	expression *regexp.Regexp
	instead    string
}

// rules are the expressions that no text may have.
var rules = []banned{
	{word(`tells?|telling|told`), "report, return, show, send or notify"},
	{word(`who asks|whoever`), "the client, the caller or another subject"},
	{word(`what is found`), "name the things"},
	{word(`mends?|mended|mending`), "fix or repair"},
	{word(`anew`), "again"},
	{word(`but for`), "except for"},
	{word(`of (?:one's|its|their|his|her) own`), "an adjective, such as separate or dedicated"},
	{word(`sick`), "unhealthy"},
	{word(`(?:is|are|was|were|be|gets?|do|does|did) well`), "healthy"},
	{regexp.MustCompile(`(?:^|[.;:] )(?:Who|What|Whose)\s[^?]*$`), "a noun as the subject"},
}

func word(e string) *regexp.Regexp { return regexp.MustCompile(`(?i)\b(?:` + e + `)\b`) }

// thirdPerson matches the verb of a doc comment.
var thirdPerson = regexp.MustCompile(`^[a-z]+s[,:;]?$`)

// check returns the findings of a file. Files without text of people have none.
func check(path string, src []byte) ([]finding, error) {
	switch filepath.Ext(path) {
	case ".go":
		return checkGo(path, src)
	case ".md", ".yaml", ".yml", ".sh", ".tpl", ".tmpl", ".txt", ".lua", ".html", ".py":
		return checkText(path, 1, string(src)), nil
	}
	if filepath.Base(path) == "Makefile" {
		return checkText(path, 1, string(src)), nil
	}
	return nil, nil
}

// checkText compares lines with the banned expressions.
func checkText(path string, first int, text string) []finding {
	var out []finding
	for i, line := range strings.Split(text, "\n") {
		for _, b := range rules {
			if m := b.expression.FindString(line); m != "" {
				out = append(out, finding{path: path, line: first + i, message: strconv.Quote(strings.TrimSpace(m)) + ": write " + b.instead})
			}
		}
	}
	return out
}

// checkGo checks comments, texts in string literals and struct tags, and how doc comments of
// functions begin.
func checkGo(path string, src []byte) ([]finding, error) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, path, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, errors.Wrapf(err, "cannot parse %s", path)
	}
	var out []finding
	line := func(p token.Pos) int { return files.Position(p).Line }
	for _, g := range f.Comments {
		for _, c := range g.List {
			out = append(out, checkText(path, line(c.Pos()), strings.TrimPrefix(strings.TrimPrefix(c.Text, "//"), " "))...)
		}
	}
	out = append(out, checkIdentifiers(path, files, f)...)
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if text := literal(n); strings.Contains(text, " ") {
				out = append(out, checkText(path, line(n.Pos()), text)...)
			}
		case *ast.FuncDecl:
			if m := checkDoc(n); m != "" {
				out = append(out, finding{path: path, line: line(n.Doc.Pos()), message: m})
			}
		}
		return true
	})
	return out, nil
}

// literal returns the text of a string literal, and nothing for other literals.
func literal(l *ast.BasicLit) string {
	if l.Kind != token.STRING {
		return ""
	}
	s, err := strconv.Unquote(l.Value)
	if err != nil {
		return ""
	}
	return s
}

// checkDoc returns what is wrong with the beginning of a function's doc comment.
func checkDoc(f *ast.FuncDecl) string {
	words := strings.Fields(f.Doc.Text())
	switch {
	case len(words) == 0:
		return ""
	case words[0] != f.Name.Name:
		return "the doc comment of " + f.Name.Name + " begins with another word"
	case len(words) < 2 || !thirdPerson.MatchString(words[1]):
		return "the doc comment of " + f.Name.Name + " has no verb after the name; write returns, reports whether, builds, ..."
	}
	return ""
}
