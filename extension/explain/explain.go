// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"slices"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// maxFound is how many rules an answer has at most.
const maxFound = 10

// What an answer says beside its rules.
const (
	noteNone = "No rule that names one of our kinds matches. Routes that name only other kinds are not known here, and may."
	noteOnly = "Which rule it is depends on headers or parameters: the first one below whose conditions hold."
	noteRest = "Routes that name only kinds other than ours are not known here, and may come first."
)

// A Query is a request, as far as it is known.
type Query struct {
	// Host without port. Empty is matched by rules for any host alone.
	Host string `json:"host"`

	// Path, without a question mark and what comes after. Empty asks for TLS
	// passthrough, which knows only the host.
	Path string `json:"path"`

	// Method of HTTP. Empty means GET.
	Method string `json:"method"`
}

// An Answer says where a request goes.
type Answer struct {
	Query Query `json:"query"`

	// Revision of the snapshot that it is told from.
	Revision uint64 `json:"revision"`

	// Note for people, on what cannot be known.
	Note string `json:"note"`

	// Rules that match, in the order in which Envoy looks at them. The first whose
	// conditions hold takes the request.
	Rules []Found `json:"rules"`

	// Generated routes that are for the request, too: they lead to Services that no rule
	// above knows. The longest prefix takes it, if it answers.
	Generated []Generated `json:"generated,omitempty"`
}

// A Found is a rule that matches.
type Found struct {
	Rule

	// Hostname of the route that matched. Empty if the listener's counts.
	Hostname string `json:"hostname,omitempty"`

	// Match that matched, in words.
	Match string `json:"match"`

	// Only are conditions that the query does not tell of: NAME=VALUE for headers,
	// ?NAME=VALUE for parameters.
	Only []string `json:"only,omitempty"`

	rank rank
}

// Explain where a request goes.
func Explain(s *ir.Snapshot, q Query) Answer {
	a := Answer{Query: q, Revision: s.Revision, Rules: []Found{}}
	var found []Found
	best := hostRank{}
	for _, r := range sortedRoutes(s) {
		if !q.asksFor(r.Key.Kind) {
			continue
		}
		host, hr, ok := matchHost(r.Info.Hostnames, q.Host)
		if !ok || hr.compare(best) < 0 {
			continue
		}
		// Envoy looks at the most specific host alone, and at no other when none of
		// its rules matches.
		if hr.compare(best) > 0 {
			best, found = hr, nil
		}
		for i := range r.Rules {
			found = append(found, matchRule(r, i, host, q)...)
		}
	}
	slices.SortStableFunc(found, func(a, b Found) int { return b.rank.compare(a.rank) })
	for _, f := range found {
		f.Rule = describeRule(s, f.rank.route, f.rank.rule)
		a.Rules = append(a.Rules, f)
		if len(f.Only) == 0 || len(a.Rules) == maxFound {
			break
		}
	}
	switch {
	case len(a.Rules) == 0:
		a.Note = noteNone
	case len(a.Rules[0].Only) > 0:
		a.Note = noteOnly
	default:
		a.Note = noteRest
	}
	return a
}

func (q Query) asksFor(k ir.RouteKind) bool {
	if q.Path == "" {
		return k == ir.KindTLSRoute
	}
	return k == ir.KindHTTPRoute || k == ir.KindGRPCRoute
}

// matchRule returns the matches of a rule that the request has.
func matchRule(r *ir.Route, i int, host string, q Query) []Found {
	rule := &r.Rules[i]
	matches := rule.Matches
	if len(matches) == 0 {
		matches = []ir.Match{{}}
	}
	var out []Found
	for _, m := range matches {
		if m.Method != "" && m.Method != cmp.Or(q.Method, "GET") || q.Path != "" && !matchPath(m, q.Path) {
			continue
		}
		f := Found{Hostname: host, Match: words(m, r.Key.Kind), Only: slices.Clone(m.Headers), rank: rankOf(r, i, m)}
		for _, p := range m.Query {
			f.Only = append(f.Only, "?"+p)
		}
		out = append(out, f)
	}
	return out
}
