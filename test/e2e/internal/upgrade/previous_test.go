// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
)

const root = "../../../.."

func TestPrevious(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	cases := map[string]struct {
		reason    string
		changelog string
		want      string
		bad       bool
	}{
		"Found":   {reason: "The line is one of the links.", changelog: "# Changelog\n\n[0.1.0]: https://example.org/0.1.0\n[previous]: https://example.org/commit/" + commit + "\n", want: commit},
		"Absent":  {reason: "A changelog without the line is an error.", changelog: "# Changelog\n", bad: true},
		"Short":   {reason: "An abbreviation may become ambiguous.", changelog: "[previous]: https://example.org/commit/0123456\n", bad: true},
		"Several": {reason: "Two lines contradict each other.", changelog: strings.Repeat("[previous]: https://example.org/commit/"+commit+"\n", 2), bad: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Previous(tc.changelog)
			if (err != nil) != tc.bad {
				t.Fatalf("\n%s\nPrevious(...): error is %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nPrevious(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPreviousCommit checks that CHANGELOG.md names a commit before this one, from which the chart
// can be installed. A shallow clone and a source archive have no history to look it up in.
func TestPreviousCommit(t *testing.T) {
	b, err := os.ReadFile(root + "/CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	commit, err := Previous(string(b))
	if err != nil {
		t.Fatal(err)
	}
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", root}, args...)...).CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	if shallow, err := git("rev-parse", "--is-shallow-repository"); err != nil || shallow != "false" {
		t.Skipf("there is no complete history: %s, %v", shallow, err)
	}
	if out, err := git("merge-base", "--is-ancestor", commit, "HEAD"); err != nil {
		t.Errorf("CHANGELOG.md names commit %s, which is not in the history of this one: %v: %s", commit, err, out)
	}
	out, err := git("ls-tree", "-r", "--name-only", "--full-tree", commit)
	if err != nil {
		t.Fatalf("cannot list the files of commit %s: %v: %s", commit, err, out)
	}
	files := strings.Split(out, "\n")
	for _, pattern := range []string{
		Charts + "/" + charts.Install + "/Chart.yaml", Charts + "/" + charts.Extension + "/Chart.yaml",
		Values + "/values.yaml", Values + "/team-values.yaml", "cluster/demo/main.go", "examples/quickstart/tailnet.yaml",
	} {
		matches := func(file string) bool { ok, err := path.Match(pattern, file); return ok && err == nil }
		if !slices.ContainsFunc(files, matches) {
			t.Errorf("the previous version has no %s", pattern)
		}
	}
}

// TestFind looks for folders of this version, which is the previous one of the next.
func TestFind(t *testing.T) {
	cases := map[string]struct {
		reason  string
		pattern string
		want    string
		bad     bool
	}{
		"Charts":  {reason: "The charts are in one folder.", pattern: Charts, want: root + "/package/charts"},
		"Values":  {reason: "So are the values.", pattern: Values, want: root + "/package/envoy-gateway"},
		"Absent":  {reason: "A pattern without a match is an error.", pattern: "*/no-such-folder", bad: true},
		"Several": {reason: "Which of two folders is meant is not known.", pattern: "cmd/*", bad: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Find(root, tc.pattern)
			if (err != nil) != tc.bad {
				t.Fatalf("\n%s\nFind(...): error is %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nFind(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
