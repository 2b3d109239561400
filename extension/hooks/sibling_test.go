// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
)

// tlsSibling is a cluster of a rule whose second backend is a Service with a
// BackendTLSPolicy: its endpoints are marked in Envoy Gateway's own list.
func tlsSibling(c *clusterv3.Cluster) {
	const mark = rule0 + "/tls/1"
	c.TransportSocketMatches = []*clusterv3.Cluster_TransportSocketMatch{{
		Name:  mark,
		Match: &structpb.Struct{Fields: map[string]*structpb.Value{"name": structpb.NewStringValue(mark)}},
		TransportSocket: &corev3.TransportSocket{
			Name:       "envoy.transport_sockets.tls",
			ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: toAny(&tlsv3.UpstreamTlsContext{Sni: "plain.example.com"})},
		},
	}}
}

// h2Sibling is a cluster of a rule one backend of which is a Service that speaks HTTP/2.
func h2Sibling(c *clusterv3.Cluster) {
	withHTTP(&httpv3.HttpProtocolOptions{UpstreamProtocolOptions: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_{
		ExplicitHttpConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig{ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{
			Http2ProtocolOptions: &corev3.Http2ProtocolOptions{},
		}},
	}})(c)
}

// siblingCases are rules with Services beside ours that are spoken to in another way.
func siblingCases() map[string]translateCase {
	mixed := rule(ours(0, "web", 1), svc(1, 1))
	changed := func(fns ...func(*clusterv3.Cluster)) []*clusterv3.Cluster {
		return []*clusterv3.Cluster{egCluster(rule0, fns...)}
	}
	const (
		second   = "httproute/default/other/rule/0"
		secondTo = second + "/match/0/*"
	)
	return map[string]translateCase{
		"TLSServiceSession": oneCase("A Service that speaks TLS should stay in Envoy Gateway's cluster, which has its sockets.",
			owned(mixed), to(rule0), changed(tlsSibling),
			view{
				Clusters: []string{rule0, webOwn + " < " + webHTTP},
				Sends:    []string{match0 + " > " + rule0 + "=1 " + webOwn + "=1"},
			}),
		"TLSServiceHash": oneCase("So it should where the cluster hashes, and the hash choose between the two.",
			mixed, hashed(to(rule0)), changed(maglev, tlsSibling),
			view{
				Clusters: []string{rule0, webHTTP + " < " + webHTTP},
				Sends:    []string{match0 + " > " + rule0 + "=1 " + webHTTP + "=1 by hash"},
			}),
		"HTTP2ServiceSession": oneCase("One cluster should not hold backends of HTTP/1 and of HTTP/2.",
			owned(mixed), to(rule0), changed(h2Sibling),
			view{
				Clusters: []string{rule0, webOwn + " < " + webHTTP},
				Sends:    []string{match0 + " > " + rule0 + "=1 " + webOwn + "=1"},
			}),
		"HTTP2Service": {
			reason: "HTTP/2 of a Service should not become that of ours, which goes on sharing.",
			contents: index.Contents{
				Routes:  []*index.Route{route(index.KindHTTPRoute, "app", mixed), route(index.KindHTTPRoute, "other", rule(ours(0, "web", 1)))},
				Targets: targets("web"),
			},
			in: Resources{
				Clusters: append(changed(h2Sibling), egCluster(second)),
				Routes:   egRoutes(egRoute(match0, prefix("/"), to(rule0)), egRoute(secondTo, prefix("/"), to(second))),
			},
			want: view{
				Clusters: []string{rule0, webHTTP + " < " + webHTTP},
				Sends:    []string{match0 + " > " + rule0 + "=1 " + webHTTP + "=1", secondTo + " > " + webHTTP},
			},
		},
	}
}
