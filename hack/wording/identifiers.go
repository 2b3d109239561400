// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
	"strings"
)

// particles are words that name neither a thing nor a property: prepositions, conjunctions, pronouns, adverbs,
// question words, and forms of be, have, do, make, and of verbs whose object the reader would have to guess.
var particles = words(`above added after again against also among asked are because been before being below beside
	besides but by can did do does each else ever every for given gone got had has have held here how if in into is
	it its just kept known least left made meanwhile must never no not now of on once one only onto over per put said sent
	should since so still such taken than that their them then there these they this those through thus till too under
	until upon very via was were what when where which while who whom whose why will with within without yes yet`)

func words(list string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(list) {
		out[w] = true
	}
	return out
}

// checkIdentifiers returns the variables, parameters, results and fields of a file whose names are particles. From
// and to are names of a pair, and at is the name of a time. Tests name results got, as Go's do.
func checkIdentifiers(path string, files *token.FileSet, f *ast.File) []finding {
	var out []finding
	test := strings.HasSuffix(path, "_test.go")
	report := func(id *ast.Ident, message string) {
		out = append(out, finding{path: path, line: files.Position(id.Pos()).Line, message: "the name " + strconv.Quote(id.Name) + " " + message})
	}
	declarations(f, func(id *ast.Ident, kind ast.Expr) {
		word := strings.ToLower(id.Name)
		if particles[word] && (!test || word != "got") {
			report(id, "is no noun; name the thing")
		}
		if id.Name != "at" || kind == nil {
			return
		}
		if t := types.ExprString(kind); !strings.Contains(t, "Time") && !strings.Contains(t, "Duration") {
			report(id, "is for a time; name the thing")
		}
	})
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok {
			for _, id := range unpaired(fn) {
				report(id, "needs its pair, from and to; name the thing")
			}
		}
	}
	return out
}

// declarations calls fn for each variable, parameter, result and field that is declared below a node, with its type
// if the declaration names it.
func declarations(root ast.Node, fn func(id *ast.Ident, kind ast.Expr)) {
	fields := func(list *ast.FieldList) {
		if list == nil {
			return
		}
		for _, field := range list.List {
			for _, id := range field.Names {
				fn(id, field.Type)
			}
		}
	}
	variables := func(expressions ...ast.Expr) {
		for _, e := range expressions {
			if id, ok := e.(*ast.Ident); ok {
				fn(id, nil)
			}
		}
	}
	ast.Inspect(root, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncType:
			fields(n.Params)
			fields(n.Results)
		case *ast.FuncDecl:
			fields(n.Recv)
		case *ast.StructType:
			fields(n.Fields)
		case *ast.ValueSpec:
			for _, id := range n.Names {
				fn(id, n.Type)
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				variables(n.Lhs...)
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				variables(n.Key, n.Value)
			}
		}
		return true
	})
}

// unpaired returns the declarations of from without to in a function, and of to without from.
func unpaired(f *ast.FuncDecl) []*ast.Ident {
	pair := map[string][]*ast.Ident{}
	declarations(f, func(id *ast.Ident, _ ast.Expr) {
		if id.Name == "from" || id.Name == "to" {
			pair[id.Name] = append(pair[id.Name], id)
		}
	})
	switch {
	case len(pair["from"]) == 0:
		return pair["to"]
	case len(pair["to"]) == 0:
		return pair["from"]
	}
	return nil
}
