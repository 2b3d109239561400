// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"strings"
	"testing"
)

func TestClean(t *testing.T) {
	cases := map[string]struct {
		reason      string
		input, want string
	}{
		"Plain":     {reason: "A plain text stays.", input: "müde, 5", want: "müde, 5"},
		"Lines":     {reason: "A text has one line.", input: "a\r\nb\tc", want: "a  b c"},
		"Control":   {reason: "Terminals get no commands.", input: "a\x1b[31mb\x00", want: "a [31mb "},
		"Direction": {reason: "Characters that change the direction of text are removed.", input: "a\u202eb\u200bc", want: "abc"},
		"Invalid":   {reason: "Invalid UTF-8 is removed.", input: "a\xffb", want: "ab"},
		"Long":      {reason: "A long text is cut between characters.", input: strings.Repeat("ä", maxLength) + "b", want: strings.Repeat("ä", maxLength/2) + "..."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Clean(tc.input); got != tc.want {
				t.Errorf("%s\nClean(...): want %.50q, got %.50q", tc.reason, tc.want, got)
			}
		})
	}
}

// TestQuotedList checks that values are elements of a list in a policy file.
func TestQuotedList(t *testing.T) {
	for want, values := range map[string][]string{"": nil, `"tag:a"`: {"tag:a"}, `"tag:a", "tag:b"`: {"tag:b", "tag:a"}, `"a\"b"`: {`a"b`}} {
		if got := QuotedList(values); got != want {
			t.Errorf("QuotedList(%q): want %s, got %s", values, want, got)
		}
	}
}
