// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package text makes texts of others safe to show: those of Tailscale's API, of users of the tailnet
// and of agents.
package text

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// maxLength limits a text in a status, in bytes.
const maxLength = 4096

// Clean returns a text in a form for a status: limited in length, and without control characters.
func Clean(s string) string { return Cut(Visible(s), maxLength) }

// Visible replaces characters that are invisible or change how text is displayed: control
// characters, characters that change the direction of text, and invalid UTF-8.
func Visible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == unicode.ReplacementChar, unicode.Is(unicode.Cf, r):
			return -1
		case unicode.IsControl(r), unicode.IsSpace(r):
			return ' '
		}
		return r
	}, s)
}

// Cut returns the text, shortened to at most limit bytes, and three dots if it was longer.
func Cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "..."
}

// QuotedList returns values as the elements of a list in a policy file: sorted, in double quotes, and separated
// by commas.
func QuotedList[S ~string](values []S) string {
	out := make([]string, 0, len(values))
	for _, v := range slices.Sorted(slices.Values(values)) {
		out = append(out, strconv.Quote(string(v)))
	}
	return strings.Join(out, ", ")
}
