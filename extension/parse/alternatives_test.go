// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

func TestAlternatives(t *testing.T) {
	path := func(kind, p string) ir.PolicyMatch {
		return ir.PolicyMatch{Match: ir.Match{PathType: kind, Path: p}}
	}
	modified := func(m ir.PolicyMatch, fn func(m *ir.PolicyMatch)) ir.PolicyMatch {
		fn(&m)
		return m
	}
	admin, root, anyPath := path("PathPrefix", "/admin"), path("Exact", "/root"), path("PathPrefix", "/")
	post := modified(root, func(m *ir.PolicyMatch) { m.Method = "POST" })
	nobody := modified(root, func(m *ir.PolicyMatch) { m.Clients = []netip.Prefix{} })
	named := modified(root, func(m *ir.PolicyMatch) { m.NamesOnly = true })
	long := path("Exact", "/"+strings.Repeat("x", maxUnion))
	cases := map[string]struct {
		reason  string
		matches []ir.PolicyMatch
		limit   *ir.RateLimit
		want    []int
		// matched and unmatched are paths that the first alternative should match, and not match.
		matched, unmatched []string
	}{
		"None":  {reason: "A rule without matches should keep none.", want: nil},
		"Paths": {reason: "Matches that differ in their paths should become one.", matches: []ir.PolicyMatch{admin, root, path("RegularExpression", "/[0-9]+|/x")}, want: []int{0}, matched: []string{"/admin", "/admin/x", "/admin?a=b", "/root", "/root?a", "/12", "/x?y"}, unmatched: []string{"/administrator", "/root/x", "/rootx", "/12/", "/xy", "/"}},
		"All":   {reason: "One of all paths should match all.", matches: []ir.PolicyMatch{admin, anyPath}, want: []int{0}, matched: []string{"/", "/x"}},
		"Other": {reason: "Matches with other conditions should stay.", matches: []ir.PolicyMatch{admin, post, nobody, named, root}, want: []int{0, 1, 2, 3, 4}, matched: []string{"/admin"}, unmatched: []string{"/root"}},
		"Runs":  {reason: "Only matches that follow each other should become one: the order may matter.", matches: []ir.PolicyMatch{admin, root, post, admin}, want: []int{0, 2, 3}, matched: []string{"/root"}},
		"Limit": {reason: "A rate limit should count the requests of each match.", matches: []ir.PolicyMatch{admin, root}, limit: &ir.RateLimit{Requests: 1, Period: time.Second}, want: []int{0, 1}},
		"Long":  {reason: "Long paths should stay apart.", matches: []ir.PolicyMatch{admin, long}, want: []int{0, 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []int
			all := Alternatives(&ir.PolicyRule{Matches: tc.matches, RateLimit: tc.limit})
			for _, a := range all {
				got = append(got, a.First)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Fatalf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			matches := func(p string) bool {
				e := ir.PathExpression(all[0].PathType, all[0].Path)
				return e == "" || regexp.MustCompile(`^(?:`+e+`)$`).MatchString(p)
			}
			for _, p := range tc.matched {
				if !matches(p) {
					t.Errorf("%s %s should match", tc.reason, p)
				}
			}
			for _, p := range tc.unmatched {
				if matches(p) {
					t.Errorf("%s %s should not match", tc.reason, p)
				}
			}
		})
	}
}
