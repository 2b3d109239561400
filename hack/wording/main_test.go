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
