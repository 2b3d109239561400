// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

func TestSameMatches(t *testing.T) {
	path := func(p string) ir.Match { return ir.Match{Path: p, PathType: "PathPrefix"} }
	suffix := &routev3.RouteMatch{
		PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"},
		Headers: []*routev3.HeaderMatcher{{Name: ":path", HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{
			StringMatch: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Suffix{Suffix: "/Get"}},
		}}},
	}
	query := prefix("/")
	query.QueryParameters = []*routev3.QueryParameterMatcher{{Name: "q", QueryParameterMatchSpecifier: &routev3.QueryParameterMatcher_StringMatch{
		StringMatch: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_SafeRegex{SafeRegex: &matcherv3.RegexMatcher{Regex: "a+"}}},
	}}}
	cases := map[string]struct {
		reason  string
		message []*routev3.RouteMatch
		rule    []ir.Match
		want    bool
	}{
		"NoMatches":     {"A rule without matches matches everything.", []*routev3.RouteMatch{prefix("/")}, nil, true},
		"Root":          {"A path of / is the default.", []*routev3.RouteMatch{prefix("/")}, []ir.Match{path("/")}, true},
		"TrailingSlash": {"Envoy Gateway removes a trailing slash.", []*routev3.RouteMatch{prefix("/a")}, []ir.Match{path("/a/")}, true},
		"OtherPath":     {"Another path is another rule.", []*routev3.RouteMatch{prefix("/a")}, []ir.Match{path("/b")}, false},
		"Exact": {
			"Exact and prefix differ.",
			[]*routev3.RouteMatch{{PathSpecifier: &routev3.RouteMatch_Path{Path: "/a"}}}, []ir.Match{path("/a")}, false,
		},
		"MissingInMessage": {"A rule that has lost a match is not the same.", []*routev3.RouteMatch{prefix("/a")}, []ir.Match{path("/a"), path("/b")}, false},
		"MissingInRule":    {"A rule with an added match is not the same.", []*routev3.RouteMatch{prefix("/a"), prefix("/b")}, []ir.Match{path("/a")}, false},
		"AnyOrder":         {"Envoy Gateway sorts routes.", []*routev3.RouteMatch{prefix("/b"), prefix("/a")}, []ir.Match{path("/a"), path("/b")}, true},
		"Method": {
			"A method is a header in Envoy.",
			[]*routev3.RouteMatch{header(prefix("/"), ":method", "GET")}, []ir.Match{{Method: "GET"}}, true,
		},
		"OtherMethod": {"Another method is another rule.", []*routev3.RouteMatch{header(prefix("/"), ":method", "GET")}, []ir.Match{{Method: "PUT"}}, false},
		"Header": {
			"Names of headers have no case, and any order.",
			[]*routev3.RouteMatch{header(header(prefix("/"), "X-B", "2"), "x-a", "1")}, []ir.Match{{Headers: []string{"x-a=1", "x-b=2"}}}, true,
		},
		"OtherValue":  {"Another value is another rule.", []*routev3.RouteMatch{header(prefix("/"), "x-a", "1")}, []ir.Match{{Headers: []string{"x-a=2"}}}, false},
		"BareHeader":  {"A name without a value matches any value.", []*routev3.RouteMatch{header(prefix("/"), "x-a", "1")}, []ir.Match{{Headers: []string{"x-a"}}}, true},
		"Query":       {"A regular expression differs from a value.", []*routev3.RouteMatch{query}, []ir.Match{{Query: []string{"q=~a+"}}}, true},
		"GRPCMethod":  {"A method of any gRPC service is the end of a path.", []*routev3.RouteMatch{suffix}, []ir.Match{{Headers: []string{":path=*/Get"}}}, true},
		"Connect":     {"CONNECT hides the path.", []*routev3.RouteMatch{{PathSpecifier: &routev3.RouteMatch_ConnectMatcher_{}}}, []ir.Match{path("/a")}, true},
		"NoSuchRoute": {"A rule without routes in the message has no match.", nil, []ir.Match{path("/a")}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var message []ir.Match
			for _, m := range tc.message {
				message = append(message, matchOf(m))
			}
			if got := sameMatches(message, tc.rule); got != tc.want {
				t.Errorf("\n%s\nsameMatches(%v, %v): want %t, got %t", tc.reason, message, tc.rule, tc.want, got)
			}
		})
	}
}

func TestParseRule(t *testing.T) {
	type want struct {
		Cluster string
		Rest    string
		OK      bool
	}
	cases := map[string]struct {
		reason string
		name   string
		want   want
	}{
		"Cluster":   {"The name of a rule's cluster ends with the rule.", "httproute/ns/app/rule/3", want{"httproute/ns/app/rule/3", "", true}},
		"Route":     {"The name of a route has its match and host after the rule.", "grpcroute/ns/app/rule/0/match/-1/*", want{"grpcroute/ns/app/rule/0", "/match/-1/*", true}},
		"L4":        {"An L4 route has one cluster.", "tcproute/ns/db/rule/-1", want{"tcproute/ns/db/rule/-1", "", true}},
		"Mirror":    {"A mirror's cluster belongs to no rule's backends.", "httproute/ns/app/rule/0-mirror-1", want{}},
		"HTTPMinus": {"HTTP rules count from zero.", "httproute/ns/app/rule/-1", want{}},
		"L4Rule":    {"L4 routes have one cluster for all rules.", "tcproute/ns/db/rule/0", want{}},
		"OtherKind": {"Other kinds have no Tailscale backends.", "service/ns/app/rule/0", want{}},
		"Shared":    {"A shared cluster belongs to no rule.", "tailscale/services/ns/web/80/http", want{}},
		"Short":     {"A short name is not a rule's name.", "httproute/ns", want{}},
		"Empty":     {"An empty name is not a rule's name.", "", want{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			k, rest, ok := parseRule(tc.name)
			got := want{Rest: rest, OK: ok}
			if ok {
				got.Cluster = k.cluster()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nparseRule(%q): -want, +got:\n%s", tc.reason, tc.name, diff)
			}
		})
	}
}
