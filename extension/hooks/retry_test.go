// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tcpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

const (
	unseen = "connect-failure,refused-stream,reset-before-request"
	repeat = unseen + ",reset"
)

// TestRetries checks which rules make Envoy retry requests.
func TestRetries(t *testing.T) {
	policy := func(a *routev3.RouteAction) *routev3.RouteAction {
		a.RetryPolicy = &routev3.RetryPolicy{RetryOn: "5xx", NumRetries: wrapperspb.UInt32(9)}
		return a
	}
	get := ir.Match{Method: "GET", Path: "/", PathType: pathPrefix}
	cases := map[string]struct {
		reason string
		rule   ir.Rule
		match  *routev3.RouteMatch
		action *routev3.RouteAction
		want   string
		other  bool
	}{
		"Single":  {"A rule with one Tailscale target should retry.", rule(ours(0, "web", 1)), prefix("/"), to(rule0), unseen, true},
		"Safe":    {"A rule with only safe requests should retry.", withMatch(rule(ours(0, "web", 1)), get), header(prefix("/"), methodHeader, "GET"), to(rule0), repeat, true},
		"Split":   {"A rule with siblings should retry.", rule(ours(0, "web", 1), svc(1, 1)), prefix("/"), to(rule0), unseen, true},
		"Swapped": {"A rule that keeps its one cluster should retry.", owned(rule(ours(0, "web", 1), svc(1, 1))), prefix("/"), to(rule0), unseen, true},
		"Policy":  {"A user's retry policy should only gain other priorities.", rule(ours(0, "web", 1)), prefix("/"), policy(to(rule0)), "5xx", true},
		"Mirror":  {"A rule that only mirrors to Tailscale backends should not change.", withMirrors(rule(svc(0, 1)), ours(2, "web", 1)), prefix("/"), mirrorTo(to(rule0), rule0+"-mirror-2"), "", false},
		"Gone":    {"A rule with an unknown target should not change.", rule(ours(0, "gone", 1)), prefix("/"), to(rule0), "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			resources := Resources{Clusters: egClusters(rule0, rule0+"-mirror-2"), Routes: egRoutes(egRoute(match0, tc.match, tc.action))}
			out, _ := Translate(ir.NewSnapshot(ir.Contents{
				Routes: []*ir.Route{route(ir.KindHTTPRoute, "app", tc.rule)}, Targets: targets("web"),
			}), testSource, resources)
			p := out.Routes[0].GetVirtualHosts()[0].GetRoutes()[0].GetRoute().GetRetryPolicy()
			if p.GetRetryOn() != tc.want || (p.GetRetryPriority() != nil) != tc.other {
				t.Errorf("%s\nwant retries on %q, other priorities %t, got %v", tc.reason, tc.want, tc.other, p)
			}
		})
	}
}

// TestConnectAttempts checks that connections are retried at another endpoint too.
func TestConnectAttempts(t *testing.T) {
	const tcp = "tcproute/default/db/rule/-1"
	resources := Resources{
		Clusters: egClusters(tcp), Listeners: []*listenerv3.Listener{egTCP("tcproute/default/db", tcp)},
	}
	out, _ := Translate(ir.NewSnapshot(ir.Contents{
		Routes: []*ir.Route{route(ir.KindTCPRoute, "db", rule(ours(0, "web", 1)))}, Targets: targets("web"),
	}), testSource, resources)
	p := &tcpproxyv3.TcpProxy{}
	if err := out.Listeners[0].GetFilterChains()[0].GetFilters()[0].GetTypedConfig().UnmarshalTo(p); err != nil {
		t.Fatal(err)
	}
	if got := p.GetMaxConnectAttempts().GetValue(); got != connectAttempts {
		t.Errorf("want %d connect attempts, got %d", connectAttempts, got)
	}
}
