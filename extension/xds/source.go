// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	// fetchTimeout is how long a new Envoy waits for endpoints before it opens its
	// listeners without them. Envoy's default of 15 s would hold back all traffic
	// while we are down.
	fetchTimeout = 2 * time.Second

	// A connection to a node that went away without a word is noticed after these
	// two together, and Envoy waits up to half a second more before it opens its stream
	// elsewhere. The endpoint server allows pings as frequent.
	keepaliveTime    = 10 * time.Second
	keepaliveTimeout = 4 * time.Second

	// reconnectBackoff is the longest pause between attempts. gRPC's own is 120 s.
	reconnectBackoff = 5 * time.Second

	statPrefix = "tailscale_eds"

	// XDSTPPrefix is what names of endpoint lists begin with where they come from
	// the authority of an Envoy's bootstrap: the authority, and the type. The
	// bootstrap that we ship has it.
	XDSTPPrefix = "xdstp://tailscale/envoy.config.endpoint.v3.ClusterLoadAssignment/"
)

// A Source tells Envoy where endpoints come from. The zero value is none.
type Source struct {
	config *corev3.ConfigSource
	xdstp  bool
}

// TLS is what Envoys check our endpoint server by, and what they present to it, in PEM. It
// is part of each cluster: files would depend on how Envoy Gateway deploys Envoys, which in
// namespaces of Gateways have no certificate of its making. Envoy leaves the key out of what
// it shows of its configuration.
type TLS struct {
	// Roots are the authorities of the server's certificate. None means no TLS.
	Roots []byte

	// Cert and Key are what Envoys present. None means nothing.
	Cert, Key []byte
}

// GoogleGRPC is our endpoint server, dialled by Envoy's own gRPC library: nothing of
// it needs to be in an Envoy's bootstrap. Each cluster opens a stream: all on one connection
// without TLS, each on its own with TLS.
//
// Target is gRPC's name of the server, such as ipv4:10.96.0.7:5006 (a Service's
// address needs no DNS, which proxies on the host's network do not have). Name is what the
// server's certificate must be for; empty means what is dialled.
func GoogleGRPC(target, name string, t TLS) Source {
	g := &corev3.GrpcService_GoogleGrpc{
		TargetUri:  target,
		StatPrefix: statPrefix,
		ChannelArgs: &corev3.GrpcService_GoogleGrpc_ChannelArgs{Args: map[string]*corev3.GrpcService_GoogleGrpc_ChannelArgs_Value{
			"grpc.keepalive_time_ms":        millis(keepaliveTime),
			"grpc.keepalive_timeout_ms":     millis(keepaliveTimeout),
			"grpc.max_reconnect_backoff_ms": millis(reconnectBackoff),
			// gRPC waits a minute for the answer to a ping by default, however short
			// the keepalive's own timeout is.
			"grpc.http2.ping_timeout_ms": millis(keepaliveTimeout),
			// By default gRPC stops after two pings, or goes on once a minute, while
			// there is no data, and a stream at rest has none (its doc/keepalive.md).
			"grpc.http2.max_pings_without_data": integer(0),
		}},
	}
	if name != "" {
		// What is dialled is an address, and the certificate is for the Service.
		g.ChannelArgs.Args["grpc.ssl_target_name_override"] = &corev3.GrpcService_GoogleGrpc_ChannelArgs_Value{
			ValueSpecifier: &corev3.GrpcService_GoogleGrpc_ChannelArgs_Value_StringValue{StringValue: name},
		}
	}
	if len(t.Roots) > 0 {
		g.ChannelCredentials = &corev3.GrpcService_GoogleGrpc_ChannelCredentials{
			CredentialSpecifier: &corev3.GrpcService_GoogleGrpc_ChannelCredentials_SslCredentials{
				SslCredentials: &corev3.GrpcService_GoogleGrpc_SslCredentials{
					RootCerts: inline(t.Roots), CertChain: inline(t.Cert), PrivateKey: inline(t.Key),
				},
			},
		}
	}
	return Source{config: &corev3.ConfigSource{
		ResourceApiVersion:  corev3.ApiVersion_V3,
		InitialFetchTimeout: durationpb.New(fetchTimeout),
		ConfigSourceSpecifier: &corev3.ConfigSource_ApiConfigSource{ApiConfigSource: &corev3.ApiConfigSource{
			ApiType:                   corev3.ApiConfigSource_DELTA_GRPC,
			TransportApiVersion:       corev3.ApiVersion_V3,
			SetNodeOnFirstMessageOnly: true,
			GrpcServices: []*corev3.GrpcService{{
				TargetSpecifier: &corev3.GrpcService_GoogleGrpc_{GoogleGrpc: g},
			}},
		}},
	}}
}

// XDSTP is our endpoint server as the authority tailscale in the Envoy's bootstrap:
// one stream carries all clusters. An Envoy whose bootstrap lacks the authority
// refuses the clusters.
func XDSTP() Source { return Source{xdstp: true} }

// XDSTPName is what an endpoint list is called there.
func XDSTPName(list string) string { return XDSTPPrefix + list }

// EDS is where a cluster gets the endpoint list of that name from.
func (s Source) EDS(list string) *clusterv3.Cluster_EdsClusterConfig {
	if s.xdstp {
		return &clusterv3.Cluster_EdsClusterConfig{ServiceName: XDSTPName(list)}
	}
	return &clusterv3.Cluster_EdsClusterConfig{ServiceName: list, EdsConfig: s.config}
}

func inline(b []byte) *corev3.DataSource {
	if len(b) == 0 {
		return nil
	}
	return &corev3.DataSource{Specifier: &corev3.DataSource_InlineBytes{InlineBytes: b}}
}

func millis(d time.Duration) *corev3.GrpcService_GoogleGrpc_ChannelArgs_Value {
	return integer(d.Milliseconds())
}

func integer(n int64) *corev3.GrpcService_GoogleGrpc_ChannelArgs_Value {
	return &corev3.GrpcService_GoogleGrpc_ChannelArgs_Value{
		ValueSpecifier: &corev3.GrpcService_GoogleGrpc_ChannelArgs_Value_IntValue{IntValue: n},
	}
}
