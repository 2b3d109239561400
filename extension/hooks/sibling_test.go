// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	dnsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dns/v3"
	proxyprotocolv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/proxy_protocol/v3"
	rawbufferv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/raw_buffer/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// tlsSibling makes the cluster of a rule whose second backend is a Service with a BackendTLSPolicy:
// Envoy Gateway's own list marks its endpoints.
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

// h2Sibling makes the cluster of a rule with a Service that speaks HTTP/2.
func h2Sibling(c *clusterv3.Cluster) {
	withHTTP(&httpv3.HttpProtocolOptions{UpstreamProtocolOptions: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_{
		ExplicitHttpConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig{ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{
			Http2ProtocolOptions: &corev3.Http2ProtocolOptions{},
		}},
	}})(c)
}

// fqdnSibling makes the cluster of a rule with a Backend that has a host name.
func fqdnSibling(c *clusterv3.Cluster) {
	c.ClusterDiscoveryType = &clusterv3.Cluster_ClusterType{ClusterType: &clusterv3.Cluster_CustomClusterType{
		Name: "envoy.cluster.dns", TypedConfig: toAny(&dnsv3.DnsCluster{RespectDnsTtl: true}),
	}}
	c.EdsClusterConfig = nil
	c.LoadAssignment = &endpointv3.ClusterLoadAssignment{ClusterName: c.GetName(), Endpoints: []*endpointv3.LocalityLbEndpoints{{
		Locality: &corev3.Locality{Region: "httproute/default/app/rule/0/backend/1"}, LoadBalancingWeight: wrapperspb.UInt32(1),
		LbEndpoints: []*endpointv3.LbEndpoint{{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
			Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
				Address: "www.example.com", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 80},
			}}},
		}}}},
	}}}
}

// proxied makes a cluster whose policy has proxyProtocol.
func proxied(c *clusterv3.Cluster) {
	c.TransportSocket = &corev3.TransportSocket{
		Name: "envoy.transport_sockets.upstream_proxy_protocol",
		ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: toAny(&proxyprotocolv3.ProxyProtocolUpstreamTransport{
			Config: &corev3.ProxyProtocolConfig{Version: corev3.ProxyProtocolConfig_V2},
			TransportSocket: &corev3.TransportSocket{
				Name: "envoy.transport_sockets.raw_buffer", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: toAny(&rawbufferv3.RawBuffer{})},
			},
		})},
	}
}

// siblingCases returns rules with Services that use another protocol than the Tailscale backends.
func siblingCases() map[string]translateCase {
	mixed := rule(ours(0, "web", 1), svc(1, 1))
	changed := func(fns ...func(*clusterv3.Cluster)) []*clusterv3.Cluster {
		return []*clusterv3.Cluster{egCluster(rule0, fns...)}
	}
	const (
		second   = "httproute/default/other/rule/0"
		secondTo = second + "/match/0/*"
	)
	tls, resources := oneRule(rule(ours(0, "web", 1)), to(rule0), changed(proxied)...)
	for _, target := range tls.Targets {
		target.Shape.TLS = &ir.UpstreamTLS{}
	}
	return map[string]translateCase{
		"ProxyProtocol": {
			reason: "A cluster should speak TLS after a header of the PROXY protocol.", contents: tls, resources: resources,
			want: view{Clusters: []string{webHTTP + " < " + webHTTP}, Sends: []string{match0 + " > " + webHTTP}},
		},
		"FQDN": oneCase("A Backend with a host name should stay in Envoy Gateway's cluster, which resolves it.",
			rule(ours(0, "web", 1), other(1, 3)), to(rule0), changed(fqdnSibling),
			view{
				Clusters: []string{rule0, webHTTP + " < " + webHTTP},
				Sends:    []string{match0 + " > " + rule0 + "=3 " + webHTTP + "=1"},
			}),
		"TLSServiceSession": oneCase("A Service that speaks TLS should stay in Envoy Gateway's cluster, which has its sockets.",
			owned(mixed), to(rule0), changed(tlsSibling),
			view{
				Clusters: []string{rule0, webOwn + " < " + webHTTP},
				Sends:    []string{match0 + " > " + rule0 + "=1 " + webOwn + "=1"},
			}),
		"TLSServiceHash": oneCase("The same should hold for a cluster with a hash policy, and the hash should choose between the two.",
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
			reason: "HTTP/2 of a Service should not apply to the Tailscale backend, which keeps its shared cluster.",
			contents: ir.Contents{
				Routes:  []*ir.Route{route(ir.KindHTTPRoute, "app", mixed), route(ir.KindHTTPRoute, "other", rule(ours(0, "web", 1)))},
				Targets: targets("web"),
			},
			resources: Resources{
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
