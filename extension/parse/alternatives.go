// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"slices"
	"strings"

	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// maxUnion is the greatest length of an expression that stands for several paths. Envoy tries it for
// each request of the route.
const maxUnion = 4 << 10

// An Alternative is a match of a policy's rule that stands for one of its matches or for several.
type Alternative struct {
	ir.PolicyMatch

	// First is the index of the first of these matches.
	First int
}

// Alternatives returns the fewest matches that match the same requests as those of a rule: matches
// that follow each other and differ in their paths alone become one. A rate limit counts the
// requests of each match, so its matches stay. No matches means all requests, as in the rule.
func Alternatives(r *ir.PolicyRule) []Alternative {
	out := make([]Alternative, 0, len(r.Matches))
	for i := 0; i < len(r.Matches); {
		first, end := r.Matches[i], i+1
		for r.RateLimit == nil && end < len(r.Matches) && pathsDiffer(first, r.Matches[end]) {
			end++
		}
		if u, ok := union(r.Matches[i:end]); ok {
			out = append(out, Alternative{PolicyMatch: u, First: i})
			i = end
			continue
		}
		for ; i < end; i++ {
			out = append(out, Alternative{PolicyMatch: r.Matches[i], First: i})
		}
	}
	return out
}

// pathsDiffer reports whether two matches are equal apart from their paths.
func pathsDiffer(a, b ir.PolicyMatch) bool {
	return a.Method == b.Method && slices.Equal(a.Headers, b.Headers) && slices.Equal(a.Query, b.Query) &&
		!a.NamesOnly && !b.NamesOnly && (a.Clients == nil) == (b.Clients == nil) && slices.Equal(a.Clients, b.Clients)
}

// union returns a match of the paths of all matches, which differ in their paths alone. False if it
// would be long, or too large for Envoy. It compiles nothing, because each translation calls it: an
// alternative of valid expressions is valid, and not larger than these together.
func union(all []ir.PolicyMatch) (ir.PolicyMatch, bool) {
	out := all[0]
	if len(all) == 1 {
		return out, true
	}
	var parts []string
	out.PathSize = 0
	for _, m := range all {
		out.PathSize += m.PathSize
		e := ir.PathExpression(m.PathType, m.Path)
		if e == "" {
			out.PathType, out.Path, out.PathSize = "", "", 0
			return out, true
		}
		parts = append(parts, "(?:"+e+")")
	}
	out.PathType, out.Path = string(gwapiv1.PathMatchRegularExpression), strings.Join(parts, "|")
	return out, len(out.Path) <= maxUnion && out.PathSize <= ir.MaxProgram
}
