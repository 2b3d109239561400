// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestCheck(t *testing.T) {
	cases := map[string]struct {
		reason string
		path   string
		text   string
		want   []string
	}{
		"Plain":        {reason: "Plain English has no findings.", path: "docs/a.md", text: "The agent reports whether the backend is healthy. It works as well as before."},
		"Words":        {reason: "Banned words are found by line, in any case.", path: "docs/a.md", text: "fine\nMended, it TELLS us", want: []string{`2: "TELLS": write report, return, show, send or notify`, `2: "Mended": write fix or repair`}},
		"PartOfWord":   {reason: "Parts of other words are no findings.", path: "docs/a.md", text: "amended, retold, homesickness"},
		"Subject":      {reason: "A clause is not a subject.", path: "docs/a.md", text: "It stops. What runs goes on.", want: []string{`1: ". What runs goes on.": write a noun as the subject`}},
		"Question":     {reason: "A question is fine.", path: "docs/a.md", text: "What happens when a pod stops?"},
		"Comment":      {reason: "Comments of Go are checked.", path: "a.go", text: "package a\n\n// X is sick.\nvar X int", want: []string{`3: "sick": write unhealthy`}},
		"Literal":      {reason: "So are texts in literals.", path: "a.go", text: "package a\n\nvar x = \"it is told\"", want: []string{`3: "told": write report, return, show, send or notify`}},
		"Identifier":   {reason: "Literals of one word are names.", path: "a.go", text: "package a\n\nvar x = \"told\""},
		"Tag":          {reason: "Struct tags hold help texts.", path: "a.go", text: "package a\n\ntype T struct {\n\tX int `help:\"Whom it tells.\"`\n}", want: []string{`4: "tells": write report, return, show, send or notify`}},
		"DocVerb":      {reason: "A doc comment has a verb after the name.", path: "a.go", text: "package a\n\n// F the thing.\nfunc F() {}", want: []string{"3: the doc comment of F has no verb after the name; write returns, reports whether, builds, ..."}},
		"DocName":      {reason: "It begins with the name.", path: "a.go", text: "package a\n\n// Returns it.\nfunc F() {}", want: []string{"3: the doc comment of F begins with another word"}},
		"DocGood":      {reason: "A good one.", path: "a.go", text: "package a\n\n// F reports whether it is so.\nfunc F() {}"},
		"WithoutDoc":   {reason: "A function needs no doc comment.", path: "a.go", text: "package a\n\nfunc F() {}"},
		"Template":     {reason: "Templates are texts, too.", path: "a.go.tmpl", text: "// It tells.", want: []string{`1: "tells": write report, return, show, send or notify`}},
		"Particle":     {reason: "A parameter has a noun as its name.", path: "a.go", text: "package a\n\nfunc f(of string) {}", want: []string{`3: the name "of" is no noun; name the thing`}},
		"Result":       {reason: "So has a result.", path: "a.go", text: "package a\n\nfunc f() (made bool) { return }", want: []string{`3: the name "made" is no noun; name the thing`}},
		"Field":        {reason: "So has a field, exported or not.", path: "a.go", text: "package a\n\ntype t struct{ Gone bool }", want: []string{`3: the name "Gone" is no noun; name the thing`}},
		"Local":        {reason: "So has a variable.", path: "a.go", text: "package a\n\nfunc f() { was := 1; _ = was }", want: []string{`3: the name "was" is no noun; name the thing`}},
		"Range":        {reason: "So has a variable of a loop.", path: "a.go", text: "package a\n\nfunc f(s []int) {\n\tfor _, it := range s {\n\t\t_ = it\n\t}\n}", want: []string{`4: the name "it" is no noun; name the thing`}},
		"Assigned":     {reason: "A name is reported where it is declared.", path: "a.go", text: "package a\n\nvar now int\n\nfunc f() { now = 1 }", want: []string{`3: the name "now" is no noun; name the thing`}},
		"Pair":         {reason: "From and to are a pair.", path: "a.go", text: "package a\n\nfunc f(from, to int) {}"},
		"Unpaired":     {reason: "Alone, neither says what it is.", path: "a.go", text: "package a\n\nfunc f(to int) {}", want: []string{`3: the name "to" needs its pair, from and to; name the thing`}},
		"Time":         {reason: "At is a time.", path: "a.go", text: "package a\n\nimport \"time\"\n\nfunc f(at time.Time) {}"},
		"Place":        {reason: "At is no place.", path: "a.go", text: "package a\n\nfunc f(at int) {}", want: []string{`3: the name "at" is for a time; name the thing`}},
		"Got":          {reason: "A test names a result got.", path: "a_test.go", text: "package a\n\nfunc f(got int) {}"},
		"GotProduct":   {reason: "Only a test does.", path: "a.go", text: "package a\n\nfunc f(got int) {}", want: []string{`3: the name "got" is no noun; name the thing`}},
		"OtherContent": {reason: "Other files are not texts.", path: "a.png", text: "told"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			found, err := check(tc.path, []byte(tc.text))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range found {
				got = append(got, fmt.Sprintf("%d: %s", f.line, f.message))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\ncheck(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRun(t *testing.T) {
	tree := fstest.MapFS{
		"docs/a.md":             {Data: []byte("It tells.")},
		"docs/reference/b.md":   {Data: []byte("It tells.")},
		"x/testdata/c.yaml":     {Data: []byte("# It tells.")},
		"x/zz_generated.foo.go": {Data: []byte("package x // It tells.")},
		"x/link":                {Data: []byte("../docs"), Mode: fs.ModeSymlink},
	}
	err := run(tree, []string{"docs", "x"})
	const want = "docs/a.md:1: \"tells\": write report, return, show, send or notify\n1 findings; CONTRIBUTING.md has the rules"
	if err == nil || err.Error() != want {
		t.Errorf("run(...): want %q, got %v", want, err)
	}
	if err := run(tree, []string{"docs/reference", "x"}); err != nil {
		t.Errorf("run(...): generated files and test data have no findings, got %v", err)
	}
}
