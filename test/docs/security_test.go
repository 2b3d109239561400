// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const securityFile = "SECURITY.md"

var (
	// citations are names of tests in backquotes, with their packages in parentheses.
	citations = regexp.MustCompile("((?:`[A-Z][A-Za-z0-9_]*(?:/[^`]+)?`, )*`[A-Z][A-Za-z0-9_]*(?:/[^`]+)?`) \\(([a-z][a-z0-9-]*(?:/[a-z0-9-]+)*(?:, [a-z][a-z0-9-]*(?:/[a-z0-9-]+)*)*)\\)")

	quoted     = regexp.MustCompile("`([^`]+)`")
	testCells  = regexp.MustCompile(`(?m)^\|(?:[^|\n]*\|)+$`)
	namesATest = regexp.MustCompile("`(?:Test|Fuzz)[A-Z]")
)

// TestSecurityTests checks that each test that SECURITY.md names exists in a package that it names.
func TestSecurityTests(t *testing.T) {
	text := read(t, securityFile)
	count := 0
	for _, row := range testCells.FindAllString(text, -1) {
		if !namesATest.MatchString(row) {
			continue
		}
		cells := strings.Split(strings.Trim(row, "|"), "|")
		cell := strings.TrimSpace(cells[len(cells)-1])
		if rest := strings.Trim(citations.ReplaceAllString(cell, ""), ", "); rest != "" {
			t.Errorf("%s: the tests %s have no package in parentheses", securityFile, rest)
		}
		for _, m := range citations.FindAllStringSubmatch(cell, -1) {
			sources := map[string]string{}
			for _, dir := range strings.Split(m[2], ", ") {
				sources[dir] = testSources(t, dir)
			}
			for _, q := range quoted.FindAllStringSubmatch(m[1], -1) {
				count++
				if problem := missing(q[1], sources); problem != "" {
					t.Errorf("%s: %s", securityFile, problem)
				}
			}
		}
	}
	if minimum := 100; count < minimum {
		t.Errorf("%s: found %d tests, want at least %d: the expressions of this test match too little", securityFile, count, minimum)
	}
}

// testSources returns the text of a package's tests, and the names of its test data.
func testSources(t *testing.T, dir string) string {
	t.Helper()
	out := &strings.Builder{}
	files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Errorf("%s: %s has no tests, %v", securityFile, dir, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(b)
	}
	for _, depth := range []string{"*", "*/*"} {
		data, err := filepath.Glob(filepath.Join(root, dir, "testdata", depth))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range data {
			fmt.Fprintf(out, "\n%q\n", strings.TrimSuffix(filepath.Base(f), filepath.Ext(f)))
		}
	}
	return out.String()
}

// missing returns why a test is in none of the sources. A test without the prefix Test is a step of
// one, and the part after a slash is a subtest, where * matches any text.
func missing(name string, sources map[string]string) string {
	name, sub, _ := strings.Cut(name, "/")
	want := []*regexp.Regexp{regexp.MustCompile(`(?m)^func ` + name + `\(`)}
	if !strings.HasPrefix(name, "Test") && !strings.HasPrefix(name, "Fuzz") {
		want[0] = regexp.MustCompile(`"` + name + `"`)
	}
	if sub != "" {
		want = append(want, regexp.MustCompile(`"`+strings.ReplaceAll(regexp.QuoteMeta(sub), `\*`, `[^"]*`)+`"`))
	}
	for dir, text := range sources {
		if slices.ContainsFunc(want, func(e *regexp.Regexp) bool { return !e.MatchString(text) }) {
			return fmt.Sprintf("%s has no test %s", dir, strings.TrimSuffix(name+"/"+sub, "/"))
		}
	}
	return ""
}
