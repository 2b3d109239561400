// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"strings"
	"testing"
)

func TestClean(t *testing.T) {
	cases := map[string]struct {
		reason   string
		in, want string
	}{
		"Plain":     {reason: "A plain text stays.", in: "müde, 5", want: "müde, 5"},
		"Lines":     {reason: "A text has one line.", in: "a\r\nb\tc", want: "a  b c"},
		"Control":   {reason: "Terminals get no commands.", in: "a\x1b[31mb\x00", want: "a [31mb "},
		"Direction": {reason: "Characters that change the direction of text are removed.", in: "a\u202eb\u200bc", want: "abc"},
		"Invalid":   {reason: "Invalid UTF-8 is removed.", in: "a\xffb", want: "ab"},
		"Long":      {reason: "A long text is cut between characters.", in: strings.Repeat("ä", maxLength) + "b", want: strings.Repeat("ä", maxLength/2) + "..."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Clean(tc.in); got != tc.want {
				t.Errorf("%s\nClean(...): want %.50q, got %.50q", tc.reason, tc.want, got)
			}
		})
	}
}
