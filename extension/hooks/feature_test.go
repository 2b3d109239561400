// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

const httpOptionsName = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

// withHTTP sets HTTP options as Envoy Gateway makes them of a ClientTrafficPolicy or of
// useClientProtocol.
func withHTTP(o *httpv3.HttpProtocolOptions) func(*clusterv3.Cluster) {
	return func(c *clusterv3.Cluster) {
		c.TypedExtensionProtocolOptions = map[string]*anypb.Any{httpOptionsName: toAny(o)}
	}
}

// featureCases returns cases of Envoy Gateway features that affect shared clusters.
func featureCases() map[string]translateCase {
	const (
		second     = "httproute/default/other/rule/0"
		secondTo   = "httproute/default/other/rule/0/match/0/*"
		sni, sni2  = "tlsroute/default/sni", "tlsroute/default/sni/rule/-1"
		webTCP     = "tailscale/services/default/web/80/tcp"
		dbTCP      = "tailscale/services/default/db/80/tcp"
		grpcRule   = "grpcroute/default/app/rule/0"
		grpcRoute0 = grpcRule + "/match/-1/www_example_com"
		webGRPC    = "tailscale/services/default/web/80/grpc"
	)
	both := ir.Contents{
		Routes: []*ir.Route{
			route(ir.KindHTTPRoute, "app", rule(ours(0, "web", 1))), aged(1, route(ir.KindHTTPRoute, "other", rule(ours(0, "web", 1)))),
		},
		Targets: targets("web"),
	}
	routes := func() []*routev3.RouteConfiguration {
		return egRoutes(egRoute(match0, prefix("/"), to(rule0)), egRoute(secondTo, prefix("/"), to(second)))
	}
	sends := []string{match0 + " > " + webHTTP, secondTo + " > " + webHTTP}
	// A policy for the whole Gateway changes the clusters of all routes.
	everywhere := func(change func(*clusterv3.Cluster)) Resources {
		return Resources{Clusters: []*clusterv3.Cluster{egCluster(rule0, change), egCluster(second, change)}, Routes: routes()}
	}
	shared := view{Clusters: []string{webHTTP + " < " + webHTTP}, Sends: sends}
	trim := &httpv3.HttpProtocolOptions{UpstreamProtocolOptions: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_{
		ExplicitHttpConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig{ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_HttpProtocolOptions{
			HttpProtocolOptions: &corev3.Http1ProtocolOptions{EnableTrailers: true},
		}},
	}}
	follow := &httpv3.HttpProtocolOptions{UpstreamProtocolOptions: &httpv3.HttpProtocolOptions_UseDownstreamProtocolConfig{
		UseDownstreamProtocolConfig: &httpv3.HttpProtocolOptions_UseDownstreamHttpConfig{},
	}}
	return map[string]translateCase{
		"HTTP1OfOneListener": {
			reason: "A route whose listener has HTTP/1 settings should have a different cluster than a route without them.", contents: both,
			resources: Resources{Clusters: []*clusterv3.Cluster{egCluster(rule0), egCluster(second, withHTTP(trim))}, Routes: routes()},
			want:      view{Clusters: []string{webHTTP + " < " + webHTTP, webLike + " < " + webHTTP}, Sends: []string{sends[0], secondTo + " > " + webLike}},
		},
		"HTTP1Everywhere":   {reason: "Routes should share a cluster if all listeners have the settings.", contents: both, resources: everywhere(withHTTP(trim)), want: shared},
		"UseClientProtocol": {reason: "Routes that follow the client's protocol should share a cluster that follows it.", contents: both, resources: everywhere(withHTTP(follow)), want: shared},
		"CircuitBreaker": {
			reason: "Limits of a policy for the Gateway should apply to all routes together.", contents: both, want: shared,
			resources: everywhere(func(c *clusterv3.Cluster) { c.CircuitBreakers.Thresholds[0].MaxConnections = wrapperspb.UInt32(7) }),
		},
		"MergedGateways": {
			reason: "Merged Gateways should share clusters, each among its own routes.", contents: both,
			resources: Resources{
				Clusters: egClusters(rule0, second),
				Routes:   append(egRoutes(egRoute(match0, prefix("/"), to(rule0))), egRoutes(egRoute(secondTo, prefix("/"), to(second)))...),
			},
			want: shared,
		},
		"SeveralListeners": {
			reason: "A route on several listeners should use the same cluster on each of them.", contents: ir.Contents{Routes: both.Routes[:1], Targets: both.Targets},
			resources: Resources{
				Clusters: egClusters(rule0),
				Routes:   append(egRoutes(egRoute(match0, prefix("/"), to(rule0))), egRoutes(egRoute(match0, prefix("/"), to(rule0)))...),
			},
			want: view{Clusters: shared.Clusters, Sends: []string{sends[0], sends[0]}},
		},
		"BothProtocols": {
			reason:   "A target with two protocols should have two clusters.",
			contents: ir.Contents{Routes: []*ir.Route{both.Routes[0], route(ir.KindGRPCRoute, "app", rule(ours(0, "web", 1)))}, Targets: both.Targets},
			resources: Resources{
				Clusters: egClusters(rule0, grpcRule),
				Routes:   egRoutes(egRoute(match0, prefix("/"), to(rule0)), egRoute(grpcRoute0, prefix("/"), to(grpcRule))),
			},
			want: view{Clusters: []string{webGRPC + " < " + webGRPC, webHTTP + " < " + webHTTP}, Sends: []string{sends[0], grpcRoute0 + " > " + webGRPC}},
		},
		"TLSSplit": {
			reason: "A TLSRoute should split connections by weight.",
			contents: ir.Contents{
				Routes: []*ir.Route{route(ir.KindTLSRoute, "sni", rule(ours(0, "web", 3), ours(1, "db", 1)))}, Targets: targets("web", "db"),
			},
			resources: Resources{Clusters: egClusters(sni2), Listeners: []*listenerv3.Listener{egTCP(sni, sni2)}},
			want:      view{Clusters: []string{dbTCP + " < " + dbTCP, webTCP + " < " + webTCP}, Sends: []string{sni + " > " + dbTCP + "=1 " + webTCP + "=3"}},
		},
	}
}

// TestRouteKept checks that a route keeps its other settings: rate limits, timeouts, tracing and
// filters.
func TestRouteKept(t *testing.T) {
	a := hashed(to(rule0))
	a.Timeout, a.IdleTimeout = durationpb.New(7), durationpb.New(8)
	a.UpgradeConfigs = []*routev3.RouteAction_UpgradeConfig{{UpgradeType: "websocket"}}
	a.RateLimits = []*routev3.RateLimit{{Actions: []*routev3.RateLimit_Action{{ActionSpecifier: &routev3.RateLimit_Action_RemoteAddress_{}}}}}
	a.HostRewriteSpecifier = &routev3.RouteAction_HostRewriteLiteral{HostRewriteLiteral: "app.example.com"}
	r := egRoute(match0, prefix("/"), a)
	r.Tracing = &routev3.Tracing{Operation: "get"}
	r.TypedPerFilterConfig = map[string]*anypb.Any{"envoy.filters.http.ratelimit": toAny(&routev3.FilterConfig{})}
	r.ResponseHeadersToRemove = []string{"server"}
	want := proto.CloneOf(r)
	want.GetRoute().ClusterSpecifier = &routev3.RouteAction_Cluster{Cluster: webHTTP}
	if err := xds.Retry(want.GetRoute(), false); err != nil {
		t.Fatal(err)
	}
	out, _ := Translate(ir.NewSnapshot(ir.Contents{
		Routes: []*ir.Route{route(ir.KindHTTPRoute, "app", rule(ours(0, "web", 1)))}, Targets: targets("web"),
	}), testSource, Resources{Clusters: egClusters(rule0), Routes: egRoutes(r)})
	if got := out.Routes[0].GetVirtualHosts()[0].GetRoutes()[0]; !proto.Equal(want, got) {
		t.Errorf("Translate(...): want %v, got %v", want, got)
	}
}
