// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package provenance

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStatement(t *testing.T) {
	commit, sha := strings.Repeat("c", 40), strings.Repeat("a", 64)
	b := Build{
		Source: "https://example.org/source", Commit: commit, Version: "v0.1.0", Arch: []string{"amd64", "arm64"},
		Go: "go1.26.7", Builder: "https://example.org/builder", Invocation: "https://example.org/runs/1",
	}
	got, err := Statement(b, Subject{Name: "example.org/agent", SHA256: sha})
	if err != nil {
		t.Fatal(err)
	}
	second, err := Statement(b, Subject{Name: "example.org/agent", SHA256: sha})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(got), string(second)); diff != "" {
		t.Errorf("two statements of one build differ:\n%s", diff)
	}
	for _, want := range []string{
		`"_type": "https://in-toto.io/Statement/v1"`, `"predicateType": "https://slsa.dev/provenance/v1"`,
		`"gitCommit": "` + commit + `"`, `"sha256": "` + sha + `"`, `"id": "https://example.org/builder"`, `"invocationId": "https://example.org/runs/1"`,
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("the statement has no %s:\n%s", want, got)
		}
	}
	if err := Check(got, sha, commit); err != nil {
		t.Error(err)
	}

	cases := map[string]struct {
		reason    string
		statement string
		sha       string
		commit    string
		want      string
	}{
		"OtherSubject": {reason: "A statement is of its subjects.", statement: string(got), sha: strings.Repeat("b", 64), commit: commit, want: "no subject"},
		"OtherCommit":  {reason: "A statement names the commit.", statement: string(got), sha: sha, commit: strings.Repeat("d", 40), want: "does not name commit"},
		"OtherType":    {reason: "A statement has SLSA provenance.", statement: strings.ReplaceAll(string(got), PredicateType, "https://example.org/other"), sha: sha, commit: commit, want: "predicate's type"},
		"NoBuilder":    {reason: "A provenance names its builder.", statement: strings.ReplaceAll(string(got), `"https://example.org/builder"`, `""`), sha: sha, commit: commit, want: "invalid"},
		"NoJSON":       {reason: "A statement is JSON.", statement: "x", sha: sha, commit: commit, want: "cannot decode"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := Check([]byte(tc.statement), tc.sha, tc.commit); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: want an error with %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
	if _, err := Statement(Build{Source: "https://example.org/source", Commit: commit}, Subject{Name: "x", SHA256: sha}); err == nil {
		t.Error("a provenance without a builder is valid")
	}
	if _, err := Statement(b); err == nil {
		t.Error("a statement without subjects is valid")
	}
}
