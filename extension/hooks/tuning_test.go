// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/common/v3"
	randomv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/random/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// checked adds a policy's health check to a cluster.
func checked(c *clusterv3.Cluster) {
	c.HealthChecks = []*corev3.HealthCheck{{
		Interval: durationpb.New(time.Second), Timeout: durationpb.New(time.Second),
		HealthyThreshold: wrapperspb.UInt32(1), UnhealthyThreshold: wrapperspb.UInt32(1),
		HealthChecker: &corev3.HealthCheck_TcpHealthCheck_{TcpHealthCheck: &corev3.HealthCheck_TcpHealthCheck{}},
	}}
}

// local makes a cluster prefer Envoy's zone, as a policy does.
func local(c *clusterv3.Cluster) {
	c.LoadBalancingPolicy = &clusterv3.LoadBalancingPolicy{Policies: []*clusterv3.LoadBalancingPolicy_Policy{{
		TypedExtensionConfig: &corev3.TypedExtensionConfig{
			Name: "envoy.load_balancing_policies.random",
			TypedConfig: toAny(&randomv3.Random{LocalityLbConfig: &commonv3.LocalityLbConfig{
				LocalityConfigSpecifier: &commonv3.LocalityLbConfig_ZoneAwareLbConfig_{ZoneAwareLbConfig: &commonv3.LocalityLbConfig_ZoneAwareLbConfig{}},
			}}),
		},
	}}}
}

// http2 makes all targets speak HTTP/2.
func http2(c ir.Contents) ir.Contents {
	for _, t := range c.Targets {
		t.Shape.HTTP2 = true
	}
	return c
}

// tuningCases returns cases of policy settings that change endpoint lists.
func tuningCases() map[string]translateCase {
	const (
		second   = "httproute/default/other/rule/0"
		secondTo = "httproute/default/other/rule/0/match/0/*"
		l4       = "tcproute/default/db/rule/-1"
		dbTCP    = "tailscale/services/default/db/80/tcp"
	)
	app := routeKey(ir.KindHTTPRoute, "app")
	two := func(pinned map[ir.RouteKey][]string, tuned map[ir.RouteKey]map[string]ir.Tuning) ir.Contents {
		return ir.Contents{
			Routes:  []*ir.Route{aged(1, route(ir.KindHTTPRoute, "app", rule(ours(0, "web", 1)))), route(ir.KindHTTPRoute, "other", rule(ours(0, "web", 1)))},
			Targets: targets("web"), Pinned: pinned, Tunings: tuned,
		}
	}
	resources := func(change, other func(*clusterv3.Cluster)) Resources {
		return Resources{
			Clusters: []*clusterv3.Cluster{egCluster(rule0, change), egCluster(second, other)},
			Routes:   egRoutes(egRoute(match0, prefix("/"), to(rule0)), egRoute(secondTo, prefix("/"), to(second))),
		}
	}
	port := map[string]ir.Tuning{"": {HealthPort: 9090}}
	both := map[ir.RouteKey]map[string]ir.Tuning{app: port, routeKey(ir.KindHTTPRoute, "other"): port}
	ownApp := webHTTP + "/httproute/default/app"
	apart := []string{match0 + " > " + ownApp, secondTo + " > " + webHTTP}
	shared := []string{match0 + " > " + webHTTP, secondTo + " > " + webHTTP}
	return map[string]translateCase{
		"HealthPortOfRoute": {
			reason:    "A route whose policy has a port for health checks should have a list with that port.",
			contents:  two(map[ir.RouteKey][]string{app: {""}}, map[ir.RouteKey]map[string]ir.Tuning{app: port}),
			resources: resources(checked, func(*clusterv3.Cluster) {}),
			want:      view{Clusters: []string{webHTTP + " < " + webHTTP, ownApp + " < " + webHTTP + "+health=9090"}, Sends: apart},
		},
		"HealthPortOfGateway": {
			reason:   "If all routes have it, they should share a cluster with such a list.",
			contents: two(nil, both), resources: resources(checked, checked),
			want: view{Clusters: []string{webHTTP + " < " + webHTTP + "+health=9090"}, Sends: shared},
		},
		"HealthPortElsewhere": {
			reason:   "A policy that Envoy Gateway did not apply should change no list: its cluster has no health check.",
			contents: two(nil, both), resources: resources(func(*clusterv3.Cluster) {}, func(*clusterv3.Cluster) {}),
			want: view{Clusters: []string{webHTTP + " < " + webHTTP}, Sends: shared},
		},
		"PreferLocal": {
			reason:   "Only the cluster should state that it prefers the zone.",
			contents: two(nil, nil), resources: resources(local, local),
			want: view{Clusters: []string{webHTTP + " < " + webHTTP + "+local"}, Sends: shared},
		},
		"PreferLocalOfOne": {
			reason:   "Routes whose lists differ should have different clusters.",
			contents: two(nil, nil), resources: resources(local, func(*clusterv3.Cluster) {}),
			want: view{
				Clusters: []string{webHTTP + " < " + webHTTP, webLike + " < " + webHTTP + "+local"},
				Sends:    []string{match0 + " > " + webLike, secondTo + " > " + webHTTP},
			},
		},
		"HTTP2OfOne": {
			reason: "Routes with different HTTP/2 settings should have different clusters.",
			contents: http2(two(nil, map[ir.RouteKey]map[string]ir.Tuning{
				app: {"": {HTTP2: ir.HTTP2{Streams: 7}}}, routeKey(ir.KindHTTPRoute, "other"): {"": {HTTP2: ir.HTTP2{Streams: 8}}},
			})),
			resources: resources(func(*clusterv3.Cluster) {}, func(*clusterv3.Cluster) {}),
			want: view{
				Clusters: []string{webHTTP + " < " + webHTTP, webLike + " < " + webHTTP},
				Sends:    []string{match0 + " > " + webLike, secondTo + " > " + webHTTP},
			},
		},
		"HTTP2OfHTTP1": {
			reason:    "The settings should change nothing for HTTP/1.",
			contents:  two(nil, map[ir.RouteKey]map[string]ir.Tuning{app: {"": {HTTP2: ir.HTTP2{Streams: 7}}}}),
			resources: resources(func(*clusterv3.Cluster) {}, func(*clusterv3.Cluster) {}),
			want:      view{Clusters: []string{webHTTP + " < " + webHTTP}, Sends: shared},
		},
		"ZonesOfTCPRoute": {
			reason: "They should apply to a TCPRoute too.",
			contents: ir.Contents{
				Routes:  []*ir.Route{route(ir.KindTCPRoute, "db", rule(ours(0, "db", 1)))},
				Targets: targets("db"),
				Tunings: map[ir.RouteKey]map[string]ir.Tuning{routeKey(ir.KindTCPRoute, "db"): {"": {Zones: []ir.ZoneWeight{{Zone: "a", Weight: 3}}}}},
			},
			resources: Resources{Clusters: []*clusterv3.Cluster{egCluster(l4)}, Listeners: []*listenerv3.Listener{egTCP("tcproute/default/db", l4)}},
			want:      view{Clusters: []string{dbTCP + " < " + dbTCP + "+zone=a:3"}, Sends: []string{"tcproute/default/db > " + dbTCP}},
		},
	}
}
