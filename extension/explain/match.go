// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"regexp"
	"regexp/syntax"
	"strings"

	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// A hostRank states how specific a hostname is: an exact one precedes a wildcard, a longer one a
// shorter, and any of them no hostname.
type hostRank struct {
	exact  bool
	length int
}

func (h hostRank) compare(o hostRank) int {
	return cmp.Or(compareBool(h.exact, o.exact), cmp.Compare(h.length, o.length))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// matchHost returns the most specific of a route's hostnames that match the host. A route without
// hostnames matches those of its listeners, which are not known here.
func matchHost(names []string, host string) (string, hostRank, bool) {
	if len(names) == 0 {
		return "", hostRank{}, true
	}
	host = strings.ToLower(host)
	found, rank, ok := "", hostRank{}, false
	for _, n := range names {
		suffix, wild := strings.CutPrefix(n, "*")
		r := hostRank{exact: !wild, length: len(n)}
		matches := host == n
		if wild {
			matches = len(host) > len(suffix) && strings.HasSuffix(host, suffix)
		}
		if matches && (!ok || r.compare(rank) > 0) {
			found, rank, ok = n, r, true
		}
	}
	return found, rank, ok
}

// matchPath reports whether a match matches the path.
func matchPath(m ir.Match, path string) bool {
	switch gwapiv1.PathMatchType(m.PathType) {
	case gwapiv1.PathMatchExact:
		return path == m.Path
	case gwapiv1.PathMatchRegularExpression:
		// Envoy uses the same syntax as Go: RE2. A quotation may be unterminated.
		parsed, err := syntax.Parse(m.Path, syntax.Perl)
		if err != nil {
			return false
		}
		re, err := regexp.Compile(`^(?:` + parsed.String() + `)$`)
		return err == nil && re.MatchString(path)
	case gwapiv1.PathMatchPathPrefix:
	}
	prefix := strings.TrimSuffix(m.Path, "/")
	rest, ok := strings.CutPrefix(path, prefix)
	return ok && (rest == "" || rest[0] == '/')
}

// A rank is the position of a rule in Envoy Gateway's order of the rules of one host
// (envoyproxy/gateway internal/gatewayapi/sort.go), then the older route, then the first by name,
// then the first of its rules.
type rank struct {
	pathType, path, headers, exactHeaders, query, exactQuery int

	route *ir.Route
	rule  int
}

func rankOf(r *ir.Route, i int, m ir.Match) rank {
	out := rank{path: len(m.Path), headers: len(m.Headers), query: len(m.Query), route: r, rule: i}
	switch gwapiv1.PathMatchType(m.PathType) {
	case gwapiv1.PathMatchExact:
		out.pathType = 2
	case gwapiv1.PathMatchRegularExpression:
		out.pathType = 1
	case gwapiv1.PathMatchPathPrefix:
	}
	if m.Path == "" {
		// The match stands for all paths.
		out.path = len("/")
	}
	out.exactHeaders, out.exactQuery = exact(m.Headers), exact(m.Query)
	if m.Method != "" {
		out.headers++
		out.exactHeaders++
	}
	return out
}

// exact returns the number of conditions that are no regular expressions.
func exact(conditions []string) int {
	n := 0
	for _, c := range conditions {
		if !strings.Contains(c, "=~") {
			n++
		}
	}
	return n
}

// compare returns a positive number if r precedes o.
func (r rank) compare(o rank) int {
	return cmp.Or(
		cmp.Compare(r.pathType, o.pathType),
		cmp.Compare(r.path, o.path),
		cmp.Compare(r.headers, o.headers),
		cmp.Compare(r.exactHeaders, o.exactHeaders),
		cmp.Compare(r.query, o.query),
		cmp.Compare(r.exactQuery, o.exactQuery),
		o.route.Info.Created.Compare(r.route.Info.Created),
		cmp.Compare(o.route.Key.Namespace, r.route.Key.Namespace),
		cmp.Compare(o.route.Key.Name, r.route.Key.Name),
		cmp.Compare(o.rule, r.rule),
	)
}

// words returns a match in words.
func words(m ir.Match, k ir.RouteKind) string {
	switch k {
	case ir.KindTLSRoute:
		return "the server name (SNI) of the client"
	case ir.KindTCPRoute, ir.KindUDPRoute:
		return "all requests of the listener"
	case ir.KindHTTPRoute, ir.KindGRPCRoute:
	}
	var out []string
	if m.Method != "" {
		out = append(out, m.Method)
	}
	switch gwapiv1.PathMatchType(m.PathType) {
	case gwapiv1.PathMatchExact:
		out = append(out, "path is "+m.Path)
	case gwapiv1.PathMatchRegularExpression:
		out = append(out, "path matches "+m.Path)
	case gwapiv1.PathMatchPathPrefix:
		out = append(out, "path begins with "+m.Path)
	default:
		out = append(out, "any path")
	}
	for _, h := range m.Headers {
		out = append(out, "header "+h)
	}
	for _, q := range m.Query {
		out = append(out, "parameter "+q)
	}
	return strings.Join(out, ", ")
}
