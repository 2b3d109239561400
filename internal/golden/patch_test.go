// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRead(t *testing.T) {
	const base = "conditions:\n- Ready=True\ndesired:\n  a: one\n  b: two\n"
	cases := map[string]struct {
		reason string
		text   string
		want   string
		err    string
	}{
		"Whole":   {reason: "A file without a base is the whole.", text: base, want: base},
		"Patch":   {reason: "Lists are replaced, and null deletes.", text: "# base: base\nconditions:\n- Ready=False\ndesired:\n  b: null\n", want: "conditions:\n- Ready=False\ndesired:\n  a: one\n"},
		"Same":    {reason: "A difference may be empty.", text: "# base: base\n{}\n", want: base},
		"NoBase":  {reason: "The base must exist.", text: "# base: none\n{}\n", err: "none"},
		"Chained": {reason: "A reader looks into two files at most.", text: "# base: nested\n{}\n", err: "itself"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range map[string]string{"base": base, "nested": "# base: base\n{}\n", "case": tc.text} {
				if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := Read(filepath.Join(dir, "case.yaml"))
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s\nRead(...): want an error with %q, got %v", tc.reason, tc.err, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s\nRead(...): %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("%s\nRead(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDifference(t *testing.T) {
	cases := map[string]struct {
		reason       string
		base, actual string
		want         string
		impossible   bool
	}{
		"Change": {reason: "Only what differs is in a patch.", base: "a: 1\nb: 2\nc: 3\n", actual: "a: 1\nb: 4\n", want: "b: 4\nc: null\n"},
		"Same":   {reason: "A patch of nothing is empty.", base: "a: 1\n", actual: "a: 1\n", want: "{}\n"},
		"Null":   {reason: "A merge patch cannot set null.", base: "a: 1\n", actual: "a: 1\nb: null\n", impossible: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := difference([]byte(tc.base), []byte(tc.actual))
			if (err != nil) != tc.impossible {
				t.Fatalf("%s\ndifference(...): %v", tc.reason, err)
			}
			if string(got) != tc.want {
				t.Errorf("%s\ndifference(...): want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}
