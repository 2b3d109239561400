// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCut(t *testing.T) {
	long := strings.Repeat("ü", 1024)
	cases := map[string]struct {
		reason  string
		message string
		n       int
		want    int // Bytes.
	}{
		"Short":   {reason: "Short messages are not truncated.", message: "ü", n: 2048, want: 2},
		"Few":     {reason: "Few messages may be long.", message: long, n: 256, want: 1023},
		"Many":    {reason: "Many messages may not be long.", message: long, n: 257, want: 127},
		"Exactly": {reason: "A message of the maximum length is not truncated.", message: strings.Repeat("x", 128), n: 2048, want: 128},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Cut(tc.message, tc.n)
			if len(got) != tc.want || !utf8.ValidString(got) {
				t.Errorf("\n%s\nCut(...): want %d bytes of UTF-8, got %d: %q", tc.reason, tc.want, len(got), got)
			}
		})
	}
}
