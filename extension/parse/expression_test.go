// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package parse

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
		"Usual":          {reason: "Most expressions can be used.", path: `/v[0-9]+/(?:users|groups)/[^/]{1,64}/.*`},
		"Quoted":         {reason: "A quotation that ends stays where it is.", path: `\Q/x.\E.*`},
		"OpenQuote":      {reason: "One that does not would go on over what is added.", path: `\Q/x`, want: `close each \Q by \E`},
		"Broken":         {reason: "What cannot be compiled is refused.", path: `/(`, want: "cannot be compiled: error parsing regexp: missing closing )"},
		"Empty":          {reason: "Envoy takes no empty one.", want: "must not be empty"},
		"Category":       {reason: "Categories of Unicode are known.", path: `/\p{Lu}\pN\P{^Greek}`},
		"Category2":      {reason: "Those that only Go knows are not.", path: `/\p{Letter}`, want: `the class \p{Letter}`},
		"Category3":      {reason: "Nor is other spelling.", path: `/\p{lu}`, want: `the class \p{lu}`},
		"Script":         {reason: "Nor are new scripts.", path: `/\P{Kawi}`, want: `the class \P{Kawi}`},
		"EscapedClass":   {reason: "A backslash may stand for itself.", path: `/\\p{Kawi}`},
		"QuotedClass":    {reason: "Quoted it is none.", path: `/\Q\p{Kawi}\E\pL`},
		"AfterQuote":     {reason: "What comes after a quotation counts.", path: `/\Qa\E\p{Kawi}`, want: `the class \p{Kawi}`},
		"Large":          {reason: "Envoy would find it too large.", path: `/\pL{1000}`, want: "is too large for Envoy"},
		"LargeAny":       {reason: "Any character may be repeated.", path: `/.{0,1000}`},
		"LargeTogether":  {reason: "Parts add up.", path: strings.Repeat(`[^a]{1000}`, 100), want: "is too large for Envoy"},
		"CodePoint":      {reason: "Envoy compares bytes.", path: `/\x{100}`, want: `\x{100} is none`},
		"Octal":          {reason: "However they are written.", path: `/\400`, want: `\400 is none`},
		"Byte":           {reason: "Bytes are known.", path: `/\x{ff}\xff\377`},
		"Wide":           {reason: "A character beyond ASCII is several.", path: `/ä|ö`},
		"WideClass":      {reason: "In a class they would be taken apart.", path: `/[\xffĀ]`, want: "not in a class"},
		"WideAfterClass": {reason: "Beside a class they are alternatives.", path: `/[]a[:digit:]]ä`},
		"WideInClass":    {reason: "Names of classes end none.", path: `/[^][:digit:]ä]`, want: "not in a class"},
		"WidePrefix":     {reason: "A path may have them.", kind: "PathPrefix", path: `/ä`},
		"WideRange":      {reason: "And a range might end before it begins.", path: `/[\xd0-Ā]`, want: "not in a class"},
		"Exact":          {reason: "A path is quoted.", kind: "Exact", path: `/\Q(`},
		"Prefix":         {reason: "So is a prefix.", kind: "PathPrefix", path: `/\Q(`},
		"AllOfThem":      {reason: "Any path needs no expression.", kind: "PathPrefix", path: `/`},
		"Backreference":  {reason: "RE2 knows no backreferences.", path: `/(a)\1`, want: "cannot be compiled"},
		"Lookahead":      {reason: "Nor what is ahead.", path: `/(?!a)`, want: "cannot be compiled"},
		"UnquotedParens": {reason: "Nobody leaves the parentheses that are around it.", path: `/a)|(?:/b`, want: "cannot be compiled"},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			if tc.kind == "" {
				tc.kind = "RegularExpression"
			}
			err := checkPathExpression(tc.kind, tc.path)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
				t.Errorf("%s\ncheckPathExpression(%q): want %q, got %q", tc.reason, tc.path, tc.want, got)
			}
		})
	}
}
