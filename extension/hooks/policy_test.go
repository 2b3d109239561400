// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"net/netip"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

// policy returns a policy of the namespace, attached to targets.
func policy(name string, targets []ir.PolicyTarget, rules ...*ir.PolicyRule) *ir.RoutePolicy {
	p := &ir.RoutePolicy{Name: nn("default", name)}
	for _, t := range targets {
		p.Targets = append(p.Targets, ir.Attachment{PolicyTarget: t, Found: true})
	}
	for i, r := range rules {
		r.Policy, r.Index = p.Name, i
		p.Rules = append(p.Rules, r)
	}
	return p
}

func toRoute(section string) []ir.PolicyTarget {
	return []ir.PolicyTarget{{Route: ir.KindHTTPRoute, NamespacedName: nn("default", "app"), Section: section}}
}

func toGateway(section string) []ir.PolicyTarget {
	return []ir.PolicyTarget{{NamespacedName: nn("default", "gw"), Section: section}}
}

func denies(name string, m ...ir.PolicyMatch) *ir.PolicyRule {
	return &ir.PolicyRule{Name: name, Deny: true, Matches: m}
}

func under(path string) ir.PolicyMatch {
	return ir.PolicyMatch{Match: ir.Match{PathType: "PathPrefix", Path: path}}
}

func from(addresses ...string) ir.PolicyMatch {
	m := ir.PolicyMatch{}
	for _, a := range addresses {
		m.Clients = append(m.Clients, netip.MustParsePrefix(a))
	}
	return m
}

// ofResource returns metadata that names a Kubernetes resource.
func ofResource(kind, name, section string) *corev3.Metadata {
	metadata, err := structpb.NewStruct(map[string]any{"resources": []any{map[string]any{
		"kind": kind, "namespace": "default", "name": name, "sectionName": section,
	}}})
	if err != nil {
		panic(err)
	}
	return &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"envoy-gateway": metadata}}
}

// policed returns resources as Envoy Gateway makes them, of one route and its listener.
func policed() Resources {
	r := egRoute(match0, prefix("/"), to(rule0))
	r.Metadata = ofResource("HTTPRoute", "app", "first")
	routes := egRoutes(r)
	routes[0].VirtualHosts[0].Metadata = ofResource("Gateway", "gw", "http")
	return Resources{
		Clusters: []*clusterv3.Cluster{egCluster(rule0)}, Routes: routes,
		Listeners: []*listenerv3.Listener{{Name: "default/gw/http", Address: address(0), FilterChains: []*listenerv3.FilterChain{{
			Filters: []*listenerv3.Filter{{Name: "hcm", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: toAny(&hcmv3.HttpConnectionManager{
				StatPrefix: "http",
				RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{
					RouteConfigName: "default/gw/http", ConfigSource: &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}},
				}},
				HttpFilters: []*hcmv3.HttpFilter{{Name: "router", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: toAny(&routerv3.Router{})}}},
			})}}},
		}}}},
	}
}

// A policyCase holds policies, and their result for policed.
type policyCase struct {
	reason   string
	contents ir.Contents

	// want are names of routes and their actions, in order.
	want []string

	// recordsClient reports that the listener records the client, and limits that it limits rates.
	recordsClient, limits bool
}

func policyCases() map[string]policyCase {
	const at, plain = "tailscale/policy/default/p/", match0 + ": " + rule0
	contents := func(ps ...*ir.RoutePolicy) ir.Contents {
		return ir.Contents{Policies: ps, Targets: targets("web")}
	}
	later := time.Unix(1, 0)
	return map[string]policyCase{
		"Deny": {
			reason:        "Requests that the rule matches should be denied before the route handles them. Matches of several paths should need one route.",
			contents:      contents(policy("p", toRoute(""), denies("a", under("/admin"), under("/root"), from("100.64.0.0/10")))),
			want:          []string{at + "a/0/" + match0 + ": 403", at + "a/2/" + match0 + ": 403", plain},
			recordsClient: true,
		},
		"OtherRoute": {
			reason:   "A policy of another route should change nothing.",
			contents: contents(policy("p", []ir.PolicyTarget{{Route: ir.KindHTTPRoute, NamespacedName: nn("default", "other")}}, denies("a"))),
			want:     []string{plain},
		},
		"OtherKind": {
			reason:   "A GRPCRoute of that name is another route.",
			contents: contents(policy("p", []ir.PolicyTarget{{Route: ir.KindGRPCRoute, NamespacedName: nn("default", "app")}}, denies("a"))),
			want:     []string{plain},
		},
		"Gateway":         {reason: "A Gateway's policy should apply to its routes.", contents: contents(policy("p", toGateway(""), denies("a", under("/x")))), want: []string{at + "a/0/" + match0 + ": 403", plain}},
		"Listener":        {reason: "A listener's policy should apply to its routes.", contents: contents(policy("p", toGateway("http"), denies("a", under("/x")))), want: []string{at + "a/0/" + match0 + ": 403", plain}},
		"OtherListener":   {reason: "A policy of another listener should change nothing.", contents: contents(policy("p", toGateway("https"), denies("a"))), want: []string{plain}},
		"Rule":            {reason: "A policy for one rule should apply to that rule.", contents: contents(policy("p", toRoute("first"), denies("a", under("/x")))), want: []string{at + "a/0/" + match0 + ": 403", plain}},
		"ConflictingRule": {reason: "A policy of another rule should change nothing.", contents: contents(policy("p", toRoute("second"), denies("a"))), want: []string{plain}},
		"Nearest": {
			reason: "The more specific policy should come first, whatever its priority.",
			contents: contents(
				policy("gw", toGateway(""), &ir.PolicyRule{Name: "a", Priority: 1000, Deny: true, Matches: []ir.PolicyMatch{under("/1")}}),
				policy("listener", toGateway("http"), denies("a", under("/2"))),
				policy("rule", toRoute("first"), denies("a", under("/3"))),
				policy("route", toRoute(""), denies("a", under("/4"))),
			),
			want: []string{
				"tailscale/policy/default/rule/a/0/" + match0 + ": 403", "tailscale/policy/default/route/a/0/" + match0 + ": 403",
				"tailscale/policy/default/listener/a/0/" + match0 + ": 403", "tailscale/policy/default/gw/a/0/" + match0 + ": 403", plain,
			},
		},
		"Order": {
			reason: "Priority should precede age, age the name, and the name the position.",
			contents: contents(
				policy("b", toRoute(""), denies("b1", under("/1")), denies("b2", under("/2")), &ir.PolicyRule{Name: "b3", Priority: 1, Deny: true, Matches: []ir.PolicyMatch{under("/3")}}),
				policy("a", toRoute(""), denies("a1", under("/4"))),
				policy("0", toRoute(""), &ir.PolicyRule{Name: "late", Created: later, Deny: true, Matches: []ir.PolicyMatch{under("/5")}}),
			),
			want: []string{
				"tailscale/policy/default/b/b3/0/" + match0 + ": 403", "tailscale/policy/default/a/a1/0/" + match0 + ": 403",
				"tailscale/policy/default/b/b1/0/" + match0 + ": 403", "tailscale/policy/default/b/b2/0/" + match0 + ": 403",
				"tailscale/policy/default/0/late/0/" + match0 + ": 403", plain,
			},
		},
		"All": {
			reason:   "A rule for all requests should be the last one.",
			contents: contents(policy("p", toRoute(""), denies("a"), denies("b", under("/x")))),
			want:     []string{at + "a/0/" + match0 + ": 403", plain},
		},
		"Problem": {
			reason:   "An invalid rule should not reach Envoy, and the others should.",
			contents: contents(policy("p", toRoute(""), &ir.PolicyRule{Name: "a", Problem: "broken", Deny: true}, denies("b", under("/x")))),
			want:     []string{at + "b/0/" + match0 + ": 403", plain},
		},
		"Redirect": {
			reason:   "Clients should get a redirect.",
			contents: contents(policy("p", toRoute(""), &ir.PolicyRule{Name: "a", Redirect: &ir.PolicyRedirect{Scheme: "https", StatusCode: 301}})),
			want:     []string{at + "a/0/" + match0 + ": redirect", plain},
		},
		"Route": {
			reason:   "Requests should go to the policy's backend, through a cluster of policies.",
			contents: contents(policy("p", toRoute(""), &ir.PolicyRule{Name: "a", Backends: []ir.BackendRef{ours(0, "web", 1)}})),
			want:     []string{at + "a/0/" + match0 + ": tailscale/policy/services/default/web/80/http", plain},
		},
		"RouteToNothing": {
			reason:   "Requests to a missing backend should get the status that Gateway API defines.",
			contents: contents(policy("p", toRoute(""), &ir.PolicyRule{Name: "a", Backends: []ir.BackendRef{ours(0, "gone", 1)}})),
			want:     []string{at + "a/0/" + match0 + ": 500", plain},
		},
		"RouteToSome": {
			reason:   "The share of requests for the missing backend should get that status.",
			contents: contents(policy("p", toRoute(""), &ir.PolicyRule{Name: "a", Backends: []ir.BackendRef{ours(0, "web", 3), ours(1, "gone", 1)}})),
			want:     []string{at + "a/0/" + match0 + ": tailscale/policy/services/default/web/80/http=3 invalid-backend-cluster=1 else INTERNAL_SERVER_ERROR", plain},
		},
		"Clients": {
			reason:        "A listener whose routes match on the client should record it.",
			contents:      contents(policy("p", toRoute(""), denies("a", from("100.64.0.0/10")))),
			want:          []string{at + "a/0/" + match0 + ": 403", plain},
			recordsClient: true,
		},
		"RateLimit": {
			reason:   "A listener whose routes limit rates should have the rate limit filter.",
			contents: contents(policy("p", toRoute(""), &ir.PolicyRule{Name: "a", RateLimit: &ir.RateLimit{Requests: 3, Period: time.Second}})),
			want:     []string{at + "a/0/" + match0 + ": " + rule0, plain},
			limits:   true,
		},
		"Nobody": {
			reason:        "A match of no client should match no request.",
			contents:      contents(policy("p", toRoute(""), denies("a", ir.PolicyMatch{Clients: []netip.Prefix{}}))),
			want:          []string{at + "a/0/" + match0 + ": 403", plain},
			recordsClient: true,
		},
	}
}

func TestPolicies(t *testing.T) {
	for name, tc := range policyCases() {
		t.Run(name, func(t *testing.T) {
			s := ir.NewSnapshot(tc.contents)
			out, summary := Translate(s, testSource, policed())
			var got []string
			for _, r := range out.Routes[0].GetVirtualHosts()[0].GetRoutes() {
				got = append(got, r.GetName()+": "+describeRoute(r))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nTranslate(...): -want, +got:\n%s", tc.reason, diff)
			}
			if summary.Inserted != len(tc.want)-1 {
				t.Errorf("\n%s\nTranslate(...): the summary counts %d routes, want %d", tc.reason, summary.Inserted, len(tc.want)-1)
			}
			filters := out.Listeners[0].GetFilterChains()[0].GetFilters()
			if recordsClient := filters[0].GetName() == xds.ClientFilter; recordsClient != tc.recordsClient {
				t.Errorf("\n%s\nTranslate(...): the listener records clients: %t, want %t", tc.reason, recordsClient, tc.recordsClient)
			}
			m := &hcmv3.HttpConnectionManager{}
			if err := filters[len(filters)-1].GetTypedConfig().UnmarshalTo(m); err != nil {
				t.Fatal(err)
			}
			if limits := m.GetHttpFilters()[0].GetName() == xds.RateLimitFilter; limits != tc.limits || m.GetHttpFilters()[len(m.GetHttpFilters())-1].GetName() != "router" {
				t.Errorf("\n%s\nTranslate(...): the listener limits rates: %t, want %t", tc.reason, limits, tc.limits)
			}
			if err := validate(out); err != nil {
				t.Errorf("\n%s\nTranslate(...): Envoy Gateway would refuse it: %v", tc.reason, err)
			}
			want := marshal(t, out)
			second, _ := Translate(s, testSource, clone(out))
			if diff := cmp.Diff(want, marshal(t, second)); diff != "" {
				t.Errorf("\n%s\nTranslate(Translate(...)): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPolicyOfListener checks a ListenerSet with a listener of the same name as the Gateway's.
func TestPolicyOfListener(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		host    string
		targets []ir.PolicyTarget
		want    int
	}{
		"OwnListener": {reason: "A listener's policy should apply to the Gateway's own listener.", host: "default/gw/http/www_example_com", targets: toGateway("http"), want: 1},
		"ListenerSet": {reason: "It should not apply to a listener of a ListenerSet.", host: "default/gw/team/more/http/www_example_com", targets: toGateway("http")},
		"Gateway":     {reason: "A policy for the whole Gateway should apply to it too.", host: "default/gw/team/more/http/www_example_com", targets: toGateway(""), want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			resources := policed()
			resources.Routes[0].VirtualHosts[0].Name = tc.host
			_, summary := Translate(ir.NewSnapshot(ir.Contents{Policies: []*ir.RoutePolicy{policy("p", tc.targets, denies("a"))}}), testSource, resources)
			if summary.Inserted != tc.want {
				t.Errorf("\n%s\nTranslate(...): want %d routes of policies, got %d", tc.reason, tc.want, summary.Inserted)
			}
		})
	}
}

// describeRoute returns what a route does.
func describeRoute(r *routev3.Route) string {
	switch {
	case r.GetDirectResponse().GetStatus() == 403:
		return "403"
	case r.GetDirectResponse().GetStatus() == 503:
		return "503"
	case r.GetDirectResponse() != nil:
		return "500"
	case r.GetRedirect() != nil:
		return "redirect"
	}
	return actionView(r.GetRoute())
}
