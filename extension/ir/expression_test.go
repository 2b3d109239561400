// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"strings"
	"testing"
)

func TestCheckPathExpression(t *testing.T) {
	cases := map[string]struct {
		reason string
		kind   string
		path   string
		want   string
	}{
		"Usual":          {reason: "Usual expressions should be accepted.", path: `/v[0-9]+/(?:users|groups)/[^/]{1,64}/.*`},
		"Quoted":         {reason: "A quotation that ends should be accepted.", path: `\Q/x.\E.*`},
		"OpenQuote":      {reason: "A quotation without an end should be refused: it would include the text that is appended.", path: `\Q/x`, want: `close each \Q by \E`},
		"Broken":         {reason: "An expression that cannot be compiled should be refused.", path: `/(`, want: "cannot be compiled: error parsing regexp: missing closing )"},
		"Empty":          {reason: "Envoy refuses an empty expression.", want: "must not be empty"},
		"Category":       {reason: "RE2 knows the categories of Unicode.", path: `/\p{Lu}\pN\P{^Greek}`},
		"Category2":      {reason: "RE2 does not know categories that only Go has.", path: `/\p{Letter}`, want: `the class \p{Letter}`},
		"Category3":      {reason: "RE2 knows categories in one spelling only.", path: `/\p{lu}`, want: `the class \p{lu}`},
		"Script":         {reason: "RE2 does not know newer scripts.", path: `/\P{Kawi}`, want: `the class \P{Kawi}`},
		"EscapedClass":   {reason: "An escaped backslash does not begin a class.", path: `/\\p{Kawi}`},
		"QuotedClass":    {reason: "A quoted class is no class.", path: `/\Q\p{Kawi}\E\pL`},
		"AfterQuote":     {reason: "A class after a quotation should be checked.", path: `/\Qa\E\p{Kawi}`, want: `the class \p{Kawi}`},
		"Large":          {reason: "An expression that is too large for Envoy should be refused.", path: `/\pL{1000}`, want: "is too large for Envoy"},
		"LargeAny":       {reason: "Repetitions of any character are small enough.", path: `/.{0,1000}`},
		"LargeTogether":  {reason: "The sizes of the parts should add up.", path: strings.Repeat(`[^a]{1000}`, 100), want: "is too large for Envoy"},
		"CodePoint":      {reason: "Envoy compares bytes, so larger code points should be refused.", path: `/\x{100}`, want: `\x{100} is none`},
		"Octal":          {reason: "Larger code points should be refused in octal too.", path: `/\400`, want: `\400 is none`},
		"Byte":           {reason: "Bytes should be accepted.", path: `/\x{ff}\xff\377`},
		"Wide":           {reason: "A character beyond ASCII, which is several bytes, should be accepted.", path: `/ä|ö`},
		"WideClass":      {reason: "A class would match the single bytes of such a character.", path: `/[\xffĀ]`, want: "not in a class"},
		"WideAfterClass": {reason: "Such a character should be accepted after a class.", path: `/[]a[:digit:]]ä`},
		"WideInClass":    {reason: "A named class does not end the class around it.", path: `/[^][:digit:]ä]`, want: "not in a class"},
		"WidePrefix":     {reason: "A path may have such characters.", kind: "PathPrefix", path: `/ä`},
		"WideRange":      {reason: "A range to such a character might end before it begins.", path: `/[\xd0-Ā]`, want: "not in a class"},
		"Exact":          {reason: "An exact path is quoted.", kind: "Exact", path: `/\Q(`},
		"Prefix":         {reason: "A prefix is quoted.", kind: "PathPrefix", path: `/\Q(`},
		"AllOfThem":      {reason: "Any path needs no expression.", kind: "PathPrefix", path: `/`},
		"Backreference":  {reason: "RE2 knows no backreferences.", path: `/(a)\1`, want: "cannot be compiled"},
		"Lookahead":      {reason: "RE2 knows no lookahead.", path: `/(?!a)`, want: "cannot be compiled"},
		"UnquotedParens": {reason: "An expression should not close the group around it.", path: `/a)|(?:/b`, want: "cannot be compiled"},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			if tc.kind == "" {
				tc.kind = "RegularExpression"
			}
			_, err := NewPrograms().CheckPath(tc.kind, tc.path)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
				t.Errorf("%s\nCheckPath(%q): want %q, got %q", tc.reason, tc.path, tc.want, got)
			}
		})
	}
}
