// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"bytes"
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/common/v3"
	rawbufferv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/raw_buffer/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

const (
	// clusterProvided is the load balancer of clusters that resolve the host of each request.
	clusterProvided = "envoy.load_balancing_policies.cluster_provided"

	// credentialInjector begins the name of the filter that adds the credentials of one backend
	// (buildHCMCredentialInjectorFilter in Envoy Gateway's
	// internal/xds/translator/credentialInjector.go).
	credentialInjector = "envoy.filters.http.credential_injector"

	// codecFilter ends a cluster's filters (buildUpstreamCodecFilter in cluster.go beside it).
	codecFilter = "envoy.extensions.filters.http.upstream_codec.v3.UpstreamCodec"
)

// Settings are those of a route's cluster, without what belongs to the endpoints of that cluster:
// clusters with other endpoints may have them.
type Settings struct {
	// Template is the template of such clusters.
	Template *clusterv3.Cluster

	// HTTP2 is for endpoints that speak HTTP/2. Nil if the route's cluster does not show it, because
	// its endpoints speak HTTP/1.
	HTTP2 *ir.HTTP2
}

// NewSettings returns the settings of a cluster that Envoy Gateway made for a route, which it does not
// change. routeHosts are as in ClusterOptions. services reports that Services may be among the cluster's
// backends. Clusters with the same settings have equal Settings.
//
// Envoy Gateway makes everything else of the backends (buildXdsCluster in its
// internal/xds/translator/cluster.go).
func NewSettings(cluster *clusterv3.Cluster, routeHosts map[string]bool, services bool) (Settings, error) {
	c := proto.CloneOf(cluster)
	dropEndpoints(c)
	c.DnsLookupFamily = defaultCluster().GetDnsLookupFamily()
	if c.CommonLbConfig == nil {
		c.CommonLbConfig = &clusterv3.Cluster_CommonLbConfig{}
	}
	for _, h := range c.GetHealthChecks() {
		if h := h.GetHttpHealthCheck(); h != nil && routeHosts[h.GetHost()] {
			h.Host = ""
		}
	}
	if err := openSocket(c); err != nil {
		return Settings{}, err
	}
	if err := balanceOthers(c, services); err != nil {
		return Settings{}, err
	}
	h, err := speakToOthers(c)
	return Settings{Template: c, HTTP2: h}, err
}

// AppendSettings appends the bytes of the fields of a cluster that NewSettings reads: it returns equal
// Settings for clusters with the same bytes, and the same other parameters. No other goroutine may read
// the cluster meanwhile.
func AppendSettings(b []byte, c *clusterv3.Cluster) ([]byte, error) {
	// This is cheaper than a copy without them.
	name, alt, metadata, discovery, eds := c.Name, c.AltStatName, c.Metadata, c.ClusterDiscoveryType, c.EdsClusterConfig
	list, matches, family, socket := c.LoadAssignment, c.TransportSocketMatches, c.DnsLookupFamily, c.TransportSocket
	dropEndpoints(c)
	if socket != nil && proxyProtocol(socket) == nil {
		c.TransportSocket = nil
	}
	// Another order of a map's entries only misses a cache.
	b, err := proto.MarshalOptions{}.MarshalAppend(b, c)
	c.Name, c.AltStatName, c.Metadata, c.ClusterDiscoveryType, c.EdsClusterConfig = name, alt, metadata, discovery, eds
	c.LoadAssignment, c.TransportSocketMatches, c.DnsLookupFamily, c.TransportSocket = list, matches, family, socket
	return b, errors.Wrap(err, "cannot marshal settings")
}

// dropEndpoints removes the fields of a cluster that name it, or belong to its endpoints.
func dropEndpoints(c *clusterv3.Cluster) {
	c.Name, c.AltStatName, c.Metadata = "", "", nil
	c.ClusterDiscoveryType, c.EdsClusterConfig, c.LoadAssignment = nil, nil, nil
	c.TransportSocketMatches = nil
	// It is for host names only, and the extension's endpoints have none.
	c.DnsLookupFamily = clusterv3.Cluster_AUTO
}

// Default reports whether the settings are those of a route without policies.
func (s Settings) Default() bool {
	return (s.HTTP2 == nil || *s.HTTP2 == ir.HTTP2{}) && proto.Equal(s.Template, defaultCluster())
}

// ForHTTP1 returns a template for endpoints that do not speak HTTP/2. Envoy refuses a cluster that checks
// health by gRPC, unless it speaks HTTP/2 ("cluster must support HTTP/2 for gRPC healthchecking").
func ForHTTP1(template *clusterv3.Cluster) *clusterv3.Cluster {
	grpc := func(h *corev3.HealthCheck) bool { return h.GetGrpcHealthCheck() != nil }
	if Speaks(template, true) || !slices.ContainsFunc(template.GetHealthChecks(), grpc) {
		return template
	}
	c := proto.CloneOf(template)
	c.HealthChecks = slices.DeleteFunc(c.GetHealthChecks(), grpc)
	return c
}

// openSocket removes TLS from a cluster's socket, which may send a PROXY protocol header.
func openSocket(c *clusterv3.Cluster) error {
	p := proxyProtocol(c.GetTransportSocket())
	c.TransportSocket = nil
	if p == nil {
		return nil
	}
	p.TransportSocket = &corev3.TransportSocket{Name: "envoy.transport_sockets.raw_buffer"}
	if err := setConfig(p.GetTransportSocket(), &rawbufferv3.RawBuffer{}); err != nil {
		return err
	}
	c.TransportSocket = &corev3.TransportSocket{Name: "envoy.transport_sockets.upstream_proxy_protocol"}
	return setConfig(c.GetTransportSocket(), p)
}

// balanceOthers removes a load balancer that no policy chose.
func balanceOthers(c *clusterv3.Cluster, services bool) error {
	for _, p := range c.GetLoadBalancingPolicy().GetPolicies() {
		config := p.GetTypedExtensionConfig()
		if config.GetName() == clusterProvided {
			c.LoadBalancingPolicy = nil
			return nil
		}
		if services {
			if err := leaveZone(config); err != nil {
				return err
			}
		}
	}
	if unbalanced(c.GetLoadBalancingPolicy()) {
		c.LoadBalancingPolicy = nil
	}
	return nil
}

// leaveZone removes the preference of Envoy's zone from a load balancer if it is the one of a Service.
// A policy that sets the same is not distinguished.
func leaveZone(config *corev3.TypedExtensionConfig) error {
	return editZones(config, func(c *commonv3.LocalityLbConfig) *commonv3.LocalityLbConfig {
		if ofService(c) {
			return byWeight()
		}
		return c
	})
}

// ofService reports whether the preference of a zone is one that Envoy Gateway makes of a Service
// (processPreferLocalZone in its internal/gatewayapi/route.go).
func ofService(c *commonv3.LocalityLbConfig) bool {
	for _, threshold := range []uint32{1, 3} {
		if proto.Equal(c, nearFrom(threshold)) {
			return true
		}
	}
	return false
}

// speakToOthers removes from a cluster the protocol of its backends, the verification of their names,
// and their credentials. It returns the settings for HTTP/2, or nil if the cluster has none.
func speakToOthers(c *clusterv3.Cluster) (*ir.HTTP2, error) {
	var h *ir.HTTP2
	if c.GetTypedExtensionProtocolOptions()[httpOptions] == nil {
		return nil, nil
	}
	err := editHTTP(c, func(o *httpv3.HttpProtocolOptions) bool {
		o.UpstreamHttpProtocolOptions = nil
		o.HttpFilters = filtersForOthers(o.GetHttpFilters())
		http1 := o.GetExplicitHttpConfig().GetHttpProtocolOptions()
		switch protocol := o.GetUpstreamProtocolOptions().(type) {
		case *httpv3.HttpProtocolOptions_UseDownstreamProtocolConfig:
			// A policy chose it.
			return true
		case *httpv3.HttpProtocolOptions_AutoConfig:
			h, http1 = http2Settings(protocol.AutoConfig.GetHttp2ProtocolOptions()), protocol.AutoConfig.GetHttpProtocolOptions()
		case *httpv3.HttpProtocolOptions_ExplicitHttpConfig_:
			if two := protocol.ExplicitHttpConfig.GetHttp2ProtocolOptions(); two != nil {
				h = http2Settings(two)
			}
		}
		if http1 == nil {
			http1 = &corev3.Http1ProtocolOptions{}
		}
		o.UpstreamProtocolOptions = explicit(&httpv3.HttpProtocolOptions_ExplicitHttpConfig{
			ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_HttpProtocolOptions{HttpProtocolOptions: http1},
		})
		return true
	})
	if bytes.Equal(c.GetTypedExtensionProtocolOptions()[httpOptions].GetValue(), defaultHTTP) {
		delete(c.TypedExtensionProtocolOptions, httpOptions)
	}
	return h, err
}

// filtersForOthers returns a cluster's filters without those that add the credentials of a backend.
func filtersForOthers(filters []*hcmv3.HttpFilter) []*hcmv3.HttpFilter {
	var out []*hcmv3.HttpFilter
	for _, f := range filters {
		if !strings.HasPrefix(f.GetName(), credentialInjector) {
			out = append(out, f)
		}
	}
	if len(out) == 1 && out[0].GetName() == codecFilter {
		return nil
	}
	return out
}

// http2Settings is the inverse of http2.
func http2Settings(o *corev3.Http2ProtocolOptions) *ir.HTTP2 {
	window := func(v *wrapperspb.UInt32Value, common uint32) uint32 {
		if v.GetValue() == common {
			return 0
		}
		return v.GetValue()
	}
	out := &ir.HTTP2{
		StreamWindow:     window(o.GetInitialStreamWindowSize(), streamWindow),
		ConnectionWindow: window(o.GetInitialConnectionWindowSize(), connectionWindow),
		Streams:          o.GetMaxConcurrentStreams().GetValue(),
	}
	if v := o.GetOverrideStreamErrorOnInvalidHttpMessage(); v != nil {
		out.OnInvalidMessage = ir.EndConnection
		if v.GetValue() {
			out.OnInvalidMessage = ir.EndStream
		}
	}
	if k := o.GetConnectionKeepalive(); k != nil {
		out.Interval, out.Timeout, out.Idle = k.GetInterval().AsDuration(), k.GetTimeout().AsDuration(), k.GetConnectionIdleInterval().AsDuration()
		out.Jitter, out.JitterSet = uint32(k.GetIntervalJitter().GetValue()), k.GetIntervalJitter() != nil
	}
	return out
}
