// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package issue

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCut(t *testing.T) {
	cases := map[string]struct {
		reason string
		text   string
		want   string
	}{
		"Short":   {reason: "A text within the limit is unchanged.", text: "short", want: "short"},
		"Letters": {reason: "A longer text is cut.", text: strings.Repeat("a", 12), want: strings.Repeat("a", 10)},
		"Runes":   {reason: "A character is kept whole or dropped.", text: "aaaaaaaaa" + "ü" + "b", want: "aaaaaaaaa"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := cut(tc.text, 10); got != tc.want || !utf8.ValidString(got) {
				t.Errorf("\n%s\ncut(...): want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}
