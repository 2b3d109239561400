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
	// fetchTimeout is the time that a new Envoy waits for endpoints before it opens its listeners
	// without them. Envoy's default of 15 s would delay all traffic while the extension is down.
	fetchTimeout = 2 * time.Second

	// These two together are the time until gRPC detects a connection to a lost node, and Envoy
	// waits up to half a second more before it opens its stream elsewhere. The endpoint server
	// permits pings at this interval.
	keepaliveTime    = 10 * time.Second
	keepaliveTimeout = 4 * time.Second

	// reconnectBackoff is the longest pause between attempts. gRPC's default is 120 s.
	reconnectBackoff = 5 * time.Second

	statPrefix = "tailscale_eds"

	// XDSTPPrefix begins the names of endpoint lists that come from the authority in an Envoy's
	// bootstrap: it has the authority and the type. The bootstrap in our documentation has the
	// authority.
	XDSTPPrefix = "xdstp://tailscale/envoy.config.endpoint.v3.ClusterLoadAssignment/"
)

// A Source is the configuration source of endpoints in clusters. The zero value is none.
type Source struct {
	config *corev3.ConfigSource
	xdstp  bool
}

// TLS holds the certificates, in PEM, with which Envoys verify the endpoint server, and which they
// present to it. They are part of each cluster: files would depend on how Envoy Gateway deploys
// Envoys, which have no certificate of Envoy Gateway in namespaces of Gateways. Envoy omits the key
// from its configuration dump.
type TLS struct {
	// Roots are the authorities of the server's certificate. None means no TLS.
	Roots []byte

	// Cert and Key are what Envoys present. None means nothing.
	Cert, Key []byte
}

// GoogleGRPC returns a source in which Envoy's own gRPC library dials the endpoint server: it needs
// nothing in an Envoy's bootstrap. Each cluster opens a stream: all on one connection without TLS,
// and each on a separate connection with TLS.
//
// target is gRPC's name of the server, such as ipv4:10.96.0.7:5006 (a Service's address needs no
// DNS, which proxies on the host's network do not have). name is the name in the server's
// certificate; empty means the dialled name.
func GoogleGRPC(target, name string, t TLS) Source {
	g := &corev3.GrpcService_GoogleGrpc{
		TargetUri:  target,
		StatPrefix: statPrefix,
		ChannelArgs: &corev3.GrpcService_GoogleGrpc_ChannelArgs{Args: map[string]*corev3.GrpcService_GoogleGrpc_ChannelArgs_Value{
			"grpc.keepalive_time_ms":        millis(keepaliveTime),
			"grpc.keepalive_timeout_ms":     millis(keepaliveTimeout),
			"grpc.max_reconnect_backoff_ms": millis(reconnectBackoff),
			// By default gRPC waits a minute for the answer to a ping, however short the
			// keepalive's timeout is.
			"grpc.http2.ping_timeout_ms": millis(keepaliveTimeout),
			// By default gRPC stops after two pings without data, or continues once a minute, and
			// an idle stream has no data (its doc/keepalive.md).
			"grpc.http2.max_pings_without_data": integer(0),
		}},
	}
	if name != "" {
		// Envoy dials an address, and the certificate is for the Service.
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

// XDSTP returns a source for the authority tailscale in the Envoy's bootstrap: one stream carries
// all clusters. An Envoy whose bootstrap lacks the authority refuses the clusters.
func XDSTP() Source { return Source{xdstp: true} }

// XDSTPName returns the name of an endpoint list under that authority.
func XDSTPName(list string) string { return XDSTPPrefix + list }

// EDS returns the configuration by which a cluster gets the endpoint list of that name.
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
