// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"slices"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// maxFound is the greatest number of rules in an answer.
const maxFound = 10

// Notes of an answer.
const (
	noteNone = "No rule with a Tailscale backend matches. Routes without Tailscale backends are not known here, and may match."
	noteOnly = "The rule depends on headers or parameters: it is the first one below whose conditions hold."
	noteRest = "Routes without Tailscale backends are not known here, and may come first."
)

// A Query describes a request.
type Query struct {
	// Host without port. Only rules for any host match an empty host.
	Host string `json:"host"`

	// Path, without the query string. Empty means TLS passthrough, which sees only the host.
	Path string `json:"path"`

	// Method of HTTP. Empty means GET.
	Method string `json:"method"`
}

// An Answer describes where a request goes.
type Answer struct {
	Query Query `json:"query"`

	// Revision of the snapshot.
	Revision uint64 `json:"revision"`

	// Note on what the snapshot cannot answer.
	Note string `json:"note"`

	// Rules that match, in Envoy's order. The first one whose conditions hold handles the request.
	Rules []Found `json:"rules"`

	// Generated routes that match too: they lead to Services that no rule above has. The longest
	// prefix handles the request, if the route answers.
	Generated []Generated `json:"generated,omitempty"`
}

// A Found is a rule that matches.
type Found struct {
	Rule

	// Hostname of the route that matches. Empty if the listener's hostname applies.
	Hostname string `json:"hostname,omitempty"`

	// Match that matches, in words.
	Match string `json:"match"`

	// Conditions are those that the query does not state: NAME=VALUE for headers, ?NAME=VALUE for
	// parameters.
	Conditions []string `json:"only,omitempty"`

	rank rank
}

// Explain returns where a request goes.
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
		// Envoy considers only the most specific host, even if none of its rules matches.
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
		if len(f.Conditions) == 0 || len(a.Rules) == maxFound {
			break
		}
	}
	switch {
	case len(a.Rules) == 0:
		a.Note = noteNone
	case len(a.Rules[0].Conditions) > 0:
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

// matchRule returns the matches of a rule that the request meets.
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
		f := Found{Hostname: host, Match: words(m, r.Key.Kind), Conditions: slices.Clone(m.Headers), rank: rankOf(r, i, m)}
		for _, p := range m.Query {
			f.Conditions = append(f.Conditions, "?"+p)
		}
		out = append(out, f)
	}
	return out
}
