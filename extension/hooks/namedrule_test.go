// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"crypto/x509"
	"maps"
	"slices"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

const (
	strict  = "httproute/default/strict/rule/1"
	strict0 = strict + "/match/0/strict_example_com"
)

// asStrict returns a rule that handles requests as a rule of the route strict.
func asStrict(m ...ir.PolicyMatch) *ir.PolicyRule {
	return &ir.PolicyRule{Name: "a", Matches: m, Named: &ir.NamedRule{PolicyTarget: ir.PolicyTarget{
		Route: ir.KindHTTPRoute, NamespacedName: nn("default", "strict"), Section: "careful",
	}}}
}

// strictRoute returns a route of that rule, with a separate filter.
func strictRoute(name string, m *routev3.RouteMatch, a *routev3.RouteAction) *routev3.Route {
	r := egRoute(name, m, a)
	r.Metadata = ofResource("HTTPRoute", "strict", "careful")
	r.TypedPerFilterConfig = map[string]*anypb.Any{"basic_auth": toAny(&corev3.Metadata{})}
	return r
}

// withStrict returns the resources of policed with routes of another host, at a listener.
func withStrict(listener string, routes ...*routev3.Route) Resources {
	r := policed()
	base := r.Routes[0].GetVirtualHosts()[0].GetRoutes()[0]
	base.TypedPerFilterConfig = map[string]*anypb.Any{"cors": toAny(&corev3.Metadata{})}
	r.Clusters = append(r.Clusters, egCluster(strict))
	r.Routes[0].VirtualHosts = append(r.Routes[0].VirtualHosts, &routev3.VirtualHost{
		Name: "default/gw/http/strict_example_com", Domains: []string{"strict.example.com"},
		Metadata: ofResource("Gateway", "gw", listener), Routes: routes,
	})
	return r
}

// A handled request describes how a route handles it.
type handled struct {
	Action  string
	Filters []string

	// Match is the match after the policy narrows it.
	Match ir.Match

	Timeout time.Duration
	Retries string
	Adds    []string
}

func handles(r *routev3.Route) handled {
	out := handled{
		Action: describeRoute(r), Filters: slices.Sorted(maps.Keys(r.GetTypedPerFilterConfig())), Match: matchOf(r.GetMatch()),
		Timeout: r.GetRoute().GetTimeout().AsDuration(), Retries: r.GetRoute().GetRetryPolicy().GetRetryOn(),
	}
	for _, h := range r.GetRequestHeadersToAdd() {
		out.Adds = append(out.Adds, h.GetHeader().GetKey())
	}
	return out
}

// TestNamedRules checks how requests are handled when a policy selects another rule for them.
func TestNamedRules(t *testing.T) {
	basic, cors := []string{"basic_auth"}, []string{"cors"}
	root := ir.Match{PathType: pathPrefix, Path: "/"}
	fails := handled{Action: "500", Filters: cors, Match: root}
	elsewhere := withStrict("http")
	elsewhere.Routes = append(elsewhere.Routes, &routev3.RouteConfiguration{Name: "default/gw/https", VirtualHosts: []*routev3.VirtualHost{{
		Name: "default/gw/https/strict_example_com", Domains: []string{"strict.example.com"}, Metadata: ofResource("Gateway", "gw", "http"),
		Routes: []*routev3.Route{strictRoute(strict0, prefix("/"), to(strict))},
	}}})
	redirects := strictRoute(strict0, prefix("/"), nil)
	redirects.Action = &routev3.Route_Redirect{Redirect: &routev3.RedirectAction{HostRedirect: "www.example.com"}}
	prefixed := func(p string) *routev3.RouteAction {
		a := to(strict)
		a.PrefixRewrite = p
		return a
	}
	rewritten := func(expression string) *routev3.RouteAction {
		a := to(strict)
		a.RegexRewrite = &matcherv3.RegexMatchAndSubstitute{Pattern: &matcherv3.RegexMatcher{Regex: expression}, Substitution: "/"}
		return a
	}
	timed := to(strict)
	timed.Timeout = durationpb.New(time.Second)
	grpc := asStrict()
	grpc.Named.Route = ir.KindGRPCRoute
	unnamed := asStrict()
	unnamed.Named.Section = "careless"
	itself := asStrict()
	itself.Named.Name, itself.Named.Section = "app", "first"
	more := asStrict()
	more.Request = ir.HeaderChange{Set: []ir.Header{{Name: "X-Operator", Value: "yes"}}}
	more.Timeout = new(time.Duration)
	*more.Timeout = 3 * time.Second
	certain := asStrict()
	certain.Certificate = &ir.ClientCertificate{Secret: nn("default", "client")}
	get := ir.Match{Method: "GET", Path: "/", PathType: pathPrefix}
	oursOf := func(r ir.Rule) ir.Contents {
		r.Name = "careful"
		return ir.Contents{
			Routes: []*ir.Route{route(ir.KindHTTPRoute, "strict", rule(svc(0, 1)), r)}, Targets: speakTLS(targets("web")),
			KeyPairs: map[types.NamespacedName]*ir.KeyPair{nn("default", "client"): ir.NewKeyPair([]byte("chain"), []byte("key"), &x509.Certificate{})},
		}
	}
	const web = "tailscale/services/default/web/80/http"
	cases := map[string]struct {
		reason    string
		resources Resources
		contents  ir.Contents
		rule      *ir.PolicyRule
		want      handled
	}{
		"Fine": {
			reason:    "The named rule should handle what matches the base route and the policy.",
			resources: withStrict("http", strictRoute(strict0, prefix("/never"), timed)), rule: asStrict(ir.PolicyMatch{Match: ir.Match{Method: "PUT"}}),
			want: handled{Action: strict, Filters: basic, Match: ir.Match{PathType: pathPrefix, Path: "/", Method: "PUT"}, Timeout: time.Second},
		},
		"OnTop": {
			reason:    "Other actions should apply to requests that the named rule handles.",
			resources: withStrict("http", strictRoute(strict0, prefix("/never"), timed)), rule: more,
			want: handled{Action: strict, Filters: basic, Match: root, Timeout: 3 * time.Second, Adds: []string{"X-Operator"}},
		},
		"First": {
			reason: "The first of several routes of the rule should count, and never one for CORS preflights.",
			resources: withStrict("http",
				strictRoute(strict+"/match/0/cors-preflight/strict_example_com", prefix("/"), to("preflight")),
				strictRoute(strict+"/match/1/strict_example_com", prefix("/1"), to(strict)),
				strictRoute(strict0, prefix("/0"), to("second"))),
			rule: asStrict(), want: handled{Action: strict, Filters: basic, Match: root},
		},
		"Redirect": {
			reason:    "A rule without backends should apply its action.",
			resources: withStrict("http", redirects), rule: asStrict(), want: handled{Action: "redirect", Filters: basic, Match: root},
		},
		"Itself": {
			reason:    "A policy may name the rule that it is attached to.",
			resources: withStrict("http"), rule: itself, want: handled{Action: rule0, Filters: cors, Match: root},
		},
		"Gone":            {reason: "Requests should fail while the named rule does not exist.", resources: withStrict("http"), rule: asStrict(), want: fails},
		"ConflictingRule": {reason: "Another rule of the route is not the named rule.", resources: withStrict("http", strictRoute(strict0, prefix("/"), to(strict))), rule: unnamed, want: fails},
		"OtherKind":       {reason: "A GRPCRoute of that name is another route.", resources: withStrict("http", strictRoute(strict0, prefix("/"), to(strict))), rule: grpc, want: fails},
		"OtherListener":   {reason: "The rule's routes at another listener may have other policies.", resources: withStrict("https", strictRoute(strict0, prefix("/"), to(strict))), rule: asStrict(), want: fails},
		"OtherConfig":     {reason: "This listener may lack the filters of other configurations.", resources: elsewhere, rule: asStrict(), want: fails},
		"Refused":         {reason: "A route that Envoy would refuse should neither serve requests nor let them pass.", resources: withStrict("http", strictRoute(strict0, prefix("/"), &routev3.RouteAction{})), rule: asStrict(), want: fails},
		"OtherPrefix":     {reason: "Envoy replaces the prefix of the base route.", resources: withStrict("http", strictRoute(strict0, prefix("/never"), prefixed("/v2"))), rule: asStrict(), want: fails},
		"SamePrefix": {
			reason:    "If the named rule has the same prefix, Envoy should replace it.",
			resources: withStrict("http", strictRoute(strict0, prefix("/"), prefixed("/v2"))), rule: asStrict(), want: handled{Action: strict, Filters: basic, Match: root},
		},
		"RemovedPrefix":  {reason: "Envoy should remove the prefix of the named rule.", resources: withStrict("http", strictRoute(strict0, prefix("/never"), rewritten(`^/never\/*`))), rule: asStrict(), want: fails},
		"RemovedSegment": {reason: "The same should hold for a prefix with a trailing slash.", resources: withStrict("http", strictRoute(strict0, prefix("/never"), rewritten(`^/never/\/*`))), rule: asStrict(), want: fails},
		"Rewritten": {
			reason:    "An expression for any path does not depend on a prefix.",
			resources: withStrict("http", strictRoute(strict0, prefix("/never"), rewritten("^/.*$"))), rule: asStrict(), want: handled{Action: strict, Filters: basic, Match: root},
		},
		"Ours": {
			reason:    "Tailscale backends should get the requests, with the named rule's retries.",
			resources: withStrict("http", strictRoute(strict0, prefix("/"), to(strict))), contents: oursOf(rule(ours(0, "web", 1))), rule: asStrict(),
			want: handled{Action: web, Filters: basic, Match: root, Retries: unseen},
		},
		"OursSafe": {
			reason:    "Retries that are safe for the named rule's requests may be unsafe for others.",
			resources: withStrict("http", strictRoute(strict0, header(prefix("/"), methodHeader, "GET"), to(strict))), contents: oursOf(withMatch(rule(ours(0, "web", 1)), get)), rule: asStrict(),
			want: handled{Action: web, Filters: basic, Match: root, Retries: unseen},
		},
		"OursStillSafe": {
			reason:    "Retries should apply if the other requests are safe too.",
			resources: withStrict("http", strictRoute(strict0, header(prefix("/"), methodHeader, "GET"), to(strict))), contents: oursOf(withMatch(rule(ours(0, "web", 1)), get)),
			rule: asStrict(ir.PolicyMatch{Match: ir.Match{Method: "GET"}}),
			want: handled{Action: web, Filters: basic, Match: get, Retries: repeat},
		},
		"Certificate": {
			reason:    "The cluster should present the certificate to the named rule's backends.",
			resources: withStrict("http", strictRoute(strict0, prefix("/"), to(strict))), contents: oursOf(rule(ours(0, "web", 1))), rule: certain,
			want: handled{Action: "tailscale/policy/client-certificate/default/client/services/default/web/80/http", Filters: basic, Match: root, Retries: unseen},
		},
		"CertificateToOthers": {
			reason:    "The named rule's other backends should get no requests.",
			resources: withStrict("http", strictRoute(strict0, prefix("/"), to(strict))), contents: oursOf(rule(svc(0, 1))), rule: certain,
			want: handled{Action: "503", Filters: basic, Match: root},
		},
		"CertificateToNothing": {
			reason:    "Requests for a removed rule should fail.",
			resources: withStrict("http"), contents: oursOf(rule(svc(0, 1))), rule: certain, want: fails,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.contents.Policies = []*ir.RoutePolicy{policy("p", toRoute(""), tc.rule)}
			s := ir.NewSnapshot(tc.contents)
			baseline, _ := Translate(ir.NewSnapshot(ir.Contents{Routes: tc.contents.Routes, Targets: tc.contents.Targets}), testSource, clone(tc.resources))
			out, _ := Translate(s, testSource, tc.resources)
			routes := out.Routes[0].GetVirtualHosts()[0].GetRoutes()
			if len(routes) != 2 {
				t.Fatalf("\n%s\nTranslate(...): want a route before the base route, got %d routes", tc.reason, len(routes))
			}
			if diff := cmp.Diff(tc.want, handles(routes[0])); diff != "" {
				t.Errorf("\n%s\nTranslate(...): -want, +got:\n%s", tc.reason, diff)
			}
			for i, v := range baseline.Routes[0].GetVirtualHosts() {
				got := out.Routes[0].GetVirtualHosts()[i].GetRoutes()
				if rest := got[len(got)-len(v.GetRoutes()):]; !slices.EqualFunc(v.GetRoutes(), rest, func(a, b *routev3.Route) bool { return proto.Equal(a, b) }) {
					t.Errorf("\n%s\nTranslate(...): other routes of %s: want %v, got %v", tc.reason, v.GetName(), v.GetRoutes(), rest)
				}
			}
			first := marshal(t, out)
			second, _ := Translate(s, testSource, clone(out))
			if diff := cmp.Diff(first, marshal(t, second)); diff != "" {
				t.Errorf("\n%s\nTranslate(Translate(...)): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestNamedRuleHasNoPolicies checks that the policies of the named rule's route do not apply in
// addition.
func TestNamedRuleHasNoPolicies(t *testing.T) {
	denied := policy("denied", []ir.PolicyTarget{{Route: ir.KindHTTPRoute, NamespacedName: nn("default", "strict")}}, denies("a"))
	s := ir.NewSnapshot(ir.Contents{Policies: []*ir.RoutePolicy{policy("p", toRoute(""), asStrict()), denied}})
	for _, first := range []int{0, 1} {
		resources := withStrict("http", strictRoute(strict0, prefix("/"), to(strict)))
		if first == 1 {
			slices.Reverse(resources.Routes[0].GetVirtualHosts())
		}
		out, _ := Translate(s, testSource, resources)
		got := map[string][]string{}
		for _, v := range out.Routes[0].GetVirtualHosts() {
			for _, r := range v.GetRoutes() {
				got[v.GetDomains()[0]] = append(got[v.GetDomains()[0]], describeRoute(r))
			}
		}
		want := map[string][]string{"www.example.com": {strict, rule0}, "strict.example.com": {"403", strict}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Translate(...): -want, +got:\n%s", diff)
		}
	}
}
