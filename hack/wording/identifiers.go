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
	beside besides but by can did do does each else ever every for given gone got had has have held here how if in into is
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
	name := func(id *ast.Ident) {
		word := strings.ToLower(id.Name)
		if test && word == "got" {
			return
		}
		if particles[word] {
			report(id, "is no noun; name the thing")
		}
	}
	fields := func(list *ast.FieldList) {
		if list == nil {
			return
		}
		for _, field := range list.List {
			for _, id := range field.Names {
				name(id)
				if id.Name == "at" && !strings.Contains(types.ExprString(field.Type), "Time") && !strings.Contains(types.ExprString(field.Type), "Duration") {
					report(id, "is for a time; name the thing")
				}
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncType:
			fields(n.Params)
			fields(n.Results)
		case *ast.FuncDecl:
			fields(n.Recv)
			for _, id := range unpaired(n) {
				report(id, "needs its pair, from and to; name the thing")
			}
		case *ast.StructType:
			fields(n.Fields)
		case *ast.ValueSpec:
			for _, id := range n.Names {
				name(id)
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, e := range n.Lhs {
					if id, ok := e.(*ast.Ident); ok {
						name(id)
					}
				}
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				for _, e := range []ast.Expr{n.Key, n.Value} {
					if id, ok := e.(*ast.Ident); ok {
						name(id)
					}
				}
			}
		}
		return true
	})
	return out
}

// unpaired returns the declarations of from without to in a function, and of to without from.
func unpaired(f *ast.FuncDecl) []*ast.Ident {
	declared := map[string][]*ast.Ident{}
	add := func(e ast.Expr) {
		if id, ok := e.(*ast.Ident); ok && (id.Name == "from" || id.Name == "to") {
			declared[id.Name] = append(declared[id.Name], id)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			for _, id := range n.Names {
				add(id)
			}
		case *ast.ValueSpec:
			for _, id := range n.Names {
				add(id)
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, e := range n.Lhs {
					add(e)
				}
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				add(n.Key)
				add(n.Value)
			}
		}
		return true
	})
	switch {
	case len(declared["from"]) == 0:
		return declared["to"]
	case len(declared["to"]) == 0:
		return declared["from"]
	}
	return nil
}
