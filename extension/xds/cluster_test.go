// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"sigs.k8s.io/yaml"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// template is Envoy Gateway's cluster for a rule with one Tailscale backend.
const template = `
altStatName: per-route
circuitBreakers: {thresholds: [{maxRetries: 1024}]}
commonLbConfig: {}
connectTimeout: 10s
dnsLookupFamily: V4_PREFERRED
edsClusterConfig: {edsConfig: {ads: {}, resourceApiVersion: V3}, serviceName: httproute/default/app/rule/0}
ignoreHealthOnHostRemoval: true
loadBalancingPolicy:
  policies:
  - typedExtensionConfig:
      name: envoy.load_balancing_policies.least_request
      typedConfig:
        '@type': type.googleapis.com/envoy.extensions.load_balancing_policies.least_request.v3.LeastRequest
        localityLbConfig: {localityWeightedLbConfig: {}}
metadata: {filterMetadata: {envoy-gateway: {resources: [{kind: HTTPRoute, name: app}]}}}
name: httproute/default/app/rule/0
perConnectionBufferLimitBytes: 32768
type: EDS
`

// peerTimeoutOptions is in every TCP cluster.
const peerTimeoutOptions = `
upstreamBindConfig: {socketOptions: [{description: TCP_USER_TIMEOUT, level: 6, name: 18, intValue: 3000}]}
`

// fair is in a cluster without a chosen load balancer.
const fair = `
loadBalancingPolicy:
  policies:
  - typedExtensionConfig:
      name: envoy.load_balancing_policies.least_request
      typedConfig:
        '@type': type.googleapis.com/envoy.extensions.load_balancing_policies.least_request.v3.LeastRequest
        localityLbConfig: {localityWeightedLbConfig: {}}
`

const name = "tailscale/services/default/web/80/http"

func TestCluster(t *testing.T) {
	cases := map[string]struct {
		reason   string
		template string
		o        ClusterOptions
		want     string
	}{
		"Shared": {
			reason: "A shared cluster should lose the fields of one route, and have limits for all routes.",
			o:      ClusterOptions{Name: name, List: name, Shape: &ir.Shape{LoadBalancer: ir.LeastRequest}, Shared: true},
			want: `
circuitBreakers: {thresholds: [{maxConnections: 16384, maxPendingRequests: 16384, maxRequests: 16384, maxRetries: 16384}]}
commonLbConfig: {healthyPanicThreshold: {value: 1}, updateMergeWindow: 0s}
connectTimeout: 10s
dnsLookupFamily: V4_PREFERRED
edsClusterConfig: {serviceName: "xdstp://tailscale/envoy.config.endpoint.v3.ClusterLoadAssignment/tailscale/services/default/web/80/http"}
ignoreHealthOnHostRemoval: true
loadBalancingPolicy:
  policies:
  - typedExtensionConfig:
      name: envoy.load_balancing_policies.least_request
      typedConfig:
        '@type': type.googleapis.com/envoy.extensions.load_balancing_policies.least_request.v3.LeastRequest
        localityLbConfig: {localityWeightedLbConfig: {}}
name: tailscale/services/default/web/80/http
perConnectionBufferLimitBytes: 32768
type: EDS
`,
		},
		"Own": {
			reason: "A cluster without a shape should only get the extension's endpoints.",
			o:      ClusterOptions{Name: "own", List: "tailscale/rule/own"},
			want: `
altStatName: per-route
circuitBreakers: {thresholds: [{maxRetries: 1024}]}
commonLbConfig: {}
connectTimeout: 10s
dnsLookupFamily: V4_PREFERRED
edsClusterConfig: {serviceName: "xdstp://tailscale/envoy.config.endpoint.v3.ClusterLoadAssignment/tailscale/rule/own"}
ignoreHealthOnHostRemoval: true
loadBalancingPolicy:
  policies:
  - typedExtensionConfig:
      name: envoy.load_balancing_policies.least_request
      typedConfig:
        '@type': type.googleapis.com/envoy.extensions.load_balancing_policies.least_request.v3.LeastRequest
        localityLbConfig: {localityWeightedLbConfig: {}}
metadata: {filterMetadata: {envoy-gateway: {resources: [{kind: HTTPRoute, name: app}]}}}
name: own
perConnectionBufferLimitBytes: 32768
type: EDS
`,
		},
		"Shape": {
			reason:   "A shape should set health checks, outlier detection, balancing and TLS.",
			template: "name: a\ntype: EDS\n",
			o: ClusterOptions{Name: "own", List: "l", CheckHost: "web", Shape: &ir.Shape{
				LoadBalancer:     ir.RoundRobin,
				HealthCheck:      &ir.HealthCheck{Path: "/health", Interval: 5 * time.Second, Timeout: time.Second, Healthy: 2, Unhealthy: 4},
				OutlierDetection: &ir.OutlierDetection{Consecutive5xx: 3, ConsecutiveGatewayFailure: 4, Interval: 30 * time.Second, BaseEjectionTime: 31 * time.Second, MaxEjectionPercent: 50, SplitLocalOriginErrors: true},
				TLS:              &ir.UpstreamTLS{ServerName: "web.example.com"},
			}},
			want: `
commonLbConfig: {healthyPanicThreshold: {value: 1}, updateMergeWindow: 0s}
edsClusterConfig: {serviceName: "xdstp://tailscale/envoy.config.endpoint.v3.ClusterLoadAssignment/l"}
healthChecks:
- timeout: 1s
  interval: 5s
  healthyThreshold: 2
  unhealthyThreshold: 4
  noTrafficInterval: 5s
  noTrafficHealthyInterval: 5s
  httpHealthCheck: {host: web, path: /health, expectedStatuses: [{start: 200, end: 400}]}
loadBalancingPolicy:
  policies:
  - typedExtensionConfig:
      name: envoy.load_balancing_policies.round_robin
      typedConfig:
        '@type': type.googleapis.com/envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin
        localityLbConfig: {localityWeightedLbConfig: {}}
name: own
outlierDetection:
  consecutive5xx: 3
  enforcingConsecutive5xx: 100
  consecutiveGatewayFailure: 4
  enforcingConsecutiveGatewayFailure: 100
  enforcingSuccessRate: 0
  interval: 30s
  baseEjectionTime: 31s
  maxEjectionPercent: 50
  splitExternalLocalOriginErrors: true
  consecutiveLocalOriginFailure: 4
transportSocket:
  name: envoy.transport_sockets.tls
  typedConfig:
    '@type': type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
    sni: web.example.com
    commonTlsContext:
      tlsParams: {tlsMinimumProtocolVersion: TLSv1_2, tlsMaximumProtocolVersion: TLSv1_3}
      validationContext:
        trustedCa: {filename: /etc/ssl/certs/ca-certificates.crt}
        matchTypedSubjectAltNames: [{sanType: DNS, matcher: {exact: web.example.com}}]
type: EDS
`,
		},
		"GRPC": {
			reason:   "gRPC should use HTTP/2, in health checks too, and keep other options.",
			template: "name: a\ntype: EDS\ntypedExtensionProtocolOptions: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {'@type': type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, commonHttpProtocolOptions: {idleTimeout: 5s}, explicitHttpConfig: {httpProtocolOptions: {}}}}\n",
			o:        ClusterOptions{Name: "own", List: "l", Protocol: ir.ProtocolGRPC, Shape: &ir.Shape{HealthCheck: &ir.HealthCheck{Path: "/health", Host: "web.example.com"}}},
			want: `
commonLbConfig: {healthyPanicThreshold: {value: 1}, updateMergeWindow: 0s}
edsClusterConfig: {serviceName: "xdstp://tailscale/envoy.config.endpoint.v3.ClusterLoadAssignment/l"}
healthChecks:
- timeout: 3s
  interval: 10s
  healthyThreshold: 2
  unhealthyThreshold: 3
  noTrafficInterval: 10s
  noTrafficHealthyInterval: 10s
  httpHealthCheck: {host: web.example.com, path: /health, codecClientType: HTTP2, expectedStatuses: [{start: 200, end: 400}]}
name: own
type: EDS
typedExtensionProtocolOptions: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {'@type': type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, commonHttpProtocolOptions: {idleTimeout: 5s}, explicitHttpConfig: {http2ProtocolOptions: {initialConnectionWindowSize: 1048576, initialStreamWindowSize: 65536}}}}
` + fair,
		},
		"ClientProtocol": {
			reason:   "A policy that follows the client's protocol should stay.",
			template: "name: a\ntype: EDS\ntypedExtensionProtocolOptions: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {'@type': type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, useDownstreamProtocolConfig: {}}}\n",
			o:        ClusterOptions{Name: "own", List: "l", Protocol: ir.ProtocolGRPC},
			want: `
edsClusterConfig: {serviceName: "xdstp://tailscale/envoy.config.endpoint.v3.ClusterLoadAssignment/l"}
name: own
type: EDS
typedExtensionProtocolOptions: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {'@type': type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, useDownstreamProtocolConfig: {}}}
`,
		},
		"HTTP2": {
			reason:   "A policy's HTTP/2 settings should apply to HTTP/2.",
			template: "name: a\ntype: EDS\n",
			o: ClusterOptions{Name: "own", List: "l", Protocol: ir.ProtocolHTTP, Shape: &ir.Shape{HTTP2: true}, HTTP2: ir.HTTP2{
				StreamWindow: 70000, ConnectionWindow: 80000, Streams: 7, OnInvalidMessage: ir.EndStream, Interval: 30 * time.Second, Timeout: 5 * time.Second, Idle: time.Minute, JitterSet: true,
			}},
			want: `
commonLbConfig: {healthyPanicThreshold: {value: 1}, updateMergeWindow: 0s}
edsClusterConfig: {serviceName: "xdstp://tailscale/envoy.config.endpoint.v3.ClusterLoadAssignment/l"}
name: own
type: EDS
typedExtensionProtocolOptions:
  envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
    '@type': type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
    explicitHttpConfig:
      http2ProtocolOptions:
        initialStreamWindowSize: 70000
        initialConnectionWindowSize: 80000
        maxConcurrentStreams: 7
        overrideStreamErrorOnInvalidHttpMessage: true
        connectionKeepalive: {interval: 30s, timeout: 5s, connectionIdleInterval: 60s, intervalJitter: {}}
` + fair,
		},
		"PooledHTTP2": {
			reason:   "HTTP/2 of a Service beside the backend should be removed, and other options stay.",
			template: "name: a\ntype: EDS\ntypedExtensionProtocolOptions: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {'@type': type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, commonHttpProtocolOptions: {idleTimeout: 5s}, explicitHttpConfig: {http2ProtocolOptions: {}}}}\n",
			o:        ClusterOptions{Name: "own", List: "l", Protocol: ir.ProtocolHTTP, Pooled: true, Shape: &ir.Shape{}},
			want: `
commonLbConfig: {healthyPanicThreshold: {value: 1}, updateMergeWindow: 0s}
edsClusterConfig: {serviceName: "xdstp://tailscale/envoy.config.endpoint.v3.ClusterLoadAssignment/l"}
name: own
type: EDS
typedExtensionProtocolOptions: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {'@type': type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, commonHttpProtocolOptions: {idleTimeout: 5s}, explicitHttpConfig: {httpProtocolOptions: {}}}}
` + fair,
		},
		"HTTP2Patched": {
			reason:   "HTTP/2 that a patch set for the backend alone should stay.",
			template: "name: a\ntype: EDS\ntypedExtensionProtocolOptions: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {'@type': type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, explicitHttpConfig: {http2ProtocolOptions: {}}}}\n",
			o:        ClusterOptions{Name: "own", List: "l", Protocol: ir.ProtocolHTTP, Shape: &ir.Shape{}},
			want: `
commonLbConfig: {healthyPanicThreshold: {value: 1}, updateMergeWindow: 0s}
edsClusterConfig: {serviceName: "xdstp://tailscale/envoy.config.endpoint.v3.ClusterLoadAssignment/l"}
name: own
type: EDS
typedExtensionProtocolOptions: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {'@type': type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, explicitHttpConfig: {http2ProtocolOptions: {}}}}
` + fair,
		},
		"TCP": {
			reason:   "The check of a TCP cluster should be a connection, whatever the path.",
			template: "name: a\ntype: EDS\n",
			o:        ClusterOptions{Name: "own", List: "l", Protocol: ir.ProtocolTCP, Shape: &ir.Shape{HealthCheck: &ir.HealthCheck{Path: "/health", Healthy: 1, Unhealthy: 1}}},
			want: `
commonLbConfig: {healthyPanicThreshold: {value: 1}, updateMergeWindow: 0s}
edsClusterConfig: {serviceName: "xdstp://tailscale/envoy.config.endpoint.v3.ClusterLoadAssignment/l"}
healthChecks: [{timeout: 3s, interval: 10s, healthyThreshold: 1, unhealthyThreshold: 1, noTrafficInterval: 10s, noTrafficHealthyInterval: 10s, tcpHealthCheck: {}}]
name: own
type: EDS
` + fair,
		},
		"UDP": {
			reason:   "The receiver of a datagram need not answer, so UDP should have no check.",
			template: "name: a\ntype: EDS\n",
			o:        ClusterOptions{Name: "own", List: "l", Protocol: ir.ProtocolUDP, Shape: &ir.Shape{HealthCheck: &ir.HealthCheck{}}},
			want: `
commonLbConfig: {healthyPanicThreshold: {value: 1}, updateMergeWindow: 0s}
edsClusterConfig: {serviceName: "xdstp://tailscale/envoy.config.endpoint.v3.ClusterLoadAssignment/l"}
name: own
type: EDS
` + fair,
		},
		"Policy": {
			reason: "A policy's settings should take precedence over the shape, except for a host that came from a route.",
			template: `
name: a
type: EDS
commonLbConfig: {healthyPanicThreshold: {value: 20}}
circuitBreakers: {thresholds: [{maxConnections: 7, maxRetries: 1024}]}
healthChecks:
- {timeout: 1s, interval: 1s, healthyThreshold: 1, unhealthyThreshold: 1, httpHealthCheck: {host: www.example.com, path: /policy}}
- {timeout: 1s, interval: 1s, healthyThreshold: 1, unhealthyThreshold: 1, httpHealthCheck: {host: explicit.example.com, path: /policy}}
outlierDetection: {consecutive5xx: 9}
loadBalancingPolicy: {policies: [{typedExtensionConfig: {name: envoy.load_balancing_policies.maglev}}]}
transportSocket: {name: policy}
`,
			o: ClusterOptions{
				Name: "s", List: "l", Shared: true, CheckHost: "web", RouteHosts: map[string]bool{"www.example.com": true},
				Shape: &ir.Shape{
					LoadBalancer: ir.RoundRobin, HealthCheck: &ir.HealthCheck{Path: "/shape"},
					OutlierDetection: &ir.OutlierDetection{Consecutive5xx: 3}, TLS: &ir.UpstreamTLS{ServerName: "x"},
				},
			},
			want: `
circuitBreakers: {thresholds: [{maxConnections: 7, maxPendingRequests: 16384, maxRequests: 16384, maxRetries: 1024}]}
commonLbConfig: {healthyPanicThreshold: {value: 20}, updateMergeWindow: 0s}
edsClusterConfig: {serviceName: "xdstp://tailscale/envoy.config.endpoint.v3.ClusterLoadAssignment/l"}
healthChecks:
- {timeout: 1s, interval: 1s, noTrafficInterval: 1s, noTrafficHealthyInterval: 1s, healthyThreshold: 1, unhealthyThreshold: 1, httpHealthCheck: {host: web, path: /policy}}
- {timeout: 1s, interval: 1s, noTrafficInterval: 1s, noTrafficHealthyInterval: 1s, healthyThreshold: 1, unhealthyThreshold: 1, httpHealthCheck: {host: explicit.example.com, path: /policy}}
loadBalancingPolicy: {policies: [{typedExtensionConfig: {name: envoy.load_balancing_policies.maglev}}]}
name: s
outlierDetection: {consecutive5xx: 9}
transportSocket: {name: policy}
type: EDS
`,
		},
		"Unbalanced": {
			reason:   "Without a policy's load balancer, weights of backends and zones should count, whatever the shape sets.",
			template: "{}\n",
			o:        ClusterOptions{Name: "s", List: "l", Shape: &ir.Shape{LoadBalancer: ir.LeastRequest}},
			want: `
commonLbConfig: {healthyPanicThreshold: {value: 1}, updateMergeWindow: 0s}
edsClusterConfig: {serviceName: "xdstp://tailscale/envoy.config.endpoint.v3.ClusterLoadAssignment/l"}
name: s
type: EDS
` + fair,
		},
		"Bound": {
			reason:   "Sockets that a patch binds should stay.",
			template: "name: a\ntype: EDS\nupstreamBindConfig: {sourceAddress: {address: 10.0.0.1, portValue: 0}}\n",
			o:        ClusterOptions{Name: "own", List: "l", Protocol: ir.ProtocolUDP},
			want: `
edsClusterConfig: {serviceName: "xdstp://tailscale/envoy.config.endpoint.v3.ClusterLoadAssignment/l"}
name: own
type: EDS
upstreamBindConfig: {sourceAddress: {address: 10.0.0.1, portValue: 0}}
`,
		},
		"DNS": {
			reason:   "A cluster whose first backend is a host name should become one of endpoints.",
			template: "name: a\nclusterType: {name: envoy.cluster.dns}\nloadAssignment: {clusterName: a}\ntransportSocketMatches: [{name: a}]\n",
			o:        ClusterOptions{Name: "own", List: "l"},
			want: `
edsClusterConfig: {serviceName: "xdstp://tailscale/envoy.config.endpoint.v3.ClusterLoadAssignment/l"}
name: own
type: EDS
`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.template == "" {
				tc.template = template
			}
			input := read(t, tc.template)
			original := read(t, tc.template)
			tc.o.Source = XDSTP()
			got, err := Cluster(input, tc.o)
			if err != nil {
				t.Fatalf("\n%s\nCluster(...): %v", tc.reason, err)
			}
			want := tc.want
			if tc.o.Protocol != ir.ProtocolUDP {
				want += peerTimeoutOptions
			}
			if diff := cmp.Diff(show(t, read(t, want)), show(t, got)); diff != "" {
				t.Errorf("\n%s\nCluster(...): -want, +got:\n%s", tc.reason, diff)
			}
			if !proto.Equal(original, input) {
				t.Errorf("\n%s\nCluster(...) changed its template", tc.reason)
			}
			second, err := Cluster(got, tc.o)
			if err != nil {
				t.Fatalf("\n%s\nCluster(Cluster(...)): %v", tc.reason, err)
			}
			if diff := cmp.Diff(show(t, got), show(t, second)); diff != "" {
				t.Errorf("\n%s\nCluster(Cluster(...)): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSource(t *testing.T) {
	want := &clusterv3.Cluster_EdsClusterConfig{
		ServiceName: name,
		EdsConfig: &corev3.ConfigSource{
			ResourceApiVersion:  corev3.ApiVersion_V3,
			InitialFetchTimeout: durationpb.New(2 * time.Second),
			ConfigSourceSpecifier: &corev3.ConfigSource_ApiConfigSource{ApiConfigSource: &corev3.ApiConfigSource{
				ApiType: corev3.ApiConfigSource_DELTA_GRPC, TransportApiVersion: corev3.ApiVersion_V3, SetNodeOnFirstMessageOnly: true,
				GrpcServices: []*corev3.GrpcService{{TargetSpecifier: &corev3.GrpcService_GoogleGrpc_{GoogleGrpc: &corev3.GrpcService_GoogleGrpc{
					TargetUri: "ipv4:10.96.0.7:5006", StatPrefix: "tailscale_eds",
					ChannelCredentials: &corev3.GrpcService_GoogleGrpc_ChannelCredentials{
						CredentialSpecifier: &corev3.GrpcService_GoogleGrpc_ChannelCredentials_SslCredentials{
							SslCredentials: &corev3.GrpcService_GoogleGrpc_SslCredentials{
								RootCerts:  &corev3.DataSource{Specifier: &corev3.DataSource_InlineBytes{InlineBytes: []byte("ROOTS")}},
								CertChain:  &corev3.DataSource{Specifier: &corev3.DataSource_InlineBytes{InlineBytes: []byte("CERT")}},
								PrivateKey: &corev3.DataSource{Specifier: &corev3.DataSource_InlineBytes{InlineBytes: []byte("KEY")}},
							},
						},
					},
					ChannelArgs: &corev3.GrpcService_GoogleGrpc_ChannelArgs{Args: map[string]*corev3.GrpcService_GoogleGrpc_ChannelArgs_Value{
						"grpc.keepalive_time_ms":            {ValueSpecifier: &corev3.GrpcService_GoogleGrpc_ChannelArgs_Value_IntValue{IntValue: 10_000}},
						"grpc.keepalive_timeout_ms":         {ValueSpecifier: &corev3.GrpcService_GoogleGrpc_ChannelArgs_Value_IntValue{IntValue: 4_000}},
						"grpc.http2.ping_timeout_ms":        {ValueSpecifier: &corev3.GrpcService_GoogleGrpc_ChannelArgs_Value_IntValue{IntValue: 4_000}},
						"grpc.http2.max_pings_without_data": {ValueSpecifier: &corev3.GrpcService_GoogleGrpc_ChannelArgs_Value_IntValue{IntValue: 0}},
						"grpc.max_reconnect_backoff_ms":     {ValueSpecifier: &corev3.GrpcService_GoogleGrpc_ChannelArgs_Value_IntValue{IntValue: 5_000}},
						"grpc.ssl_target_name_override":     {ValueSpecifier: &corev3.GrpcService_GoogleGrpc_ChannelArgs_Value_StringValue{StringValue: "eds.example.svc"}},
					}},
				}}}},
			}},
		},
	}
	got := GoogleGRPC("ipv4:10.96.0.7:5006", "eds.example.svc", TLS{Roots: []byte("ROOTS"), Cert: []byte("CERT"), Key: []byte("KEY")}).EDS(name)
	if !proto.Equal(want, got) {
		t.Errorf("GoogleGRPC(...).EDS(...): want %v, got %v", want, got)
	}
	c := &clusterv3.Cluster{Name: name, ConnectTimeout: durationpb.New(time.Second), PerConnectionBufferLimitBytes: wrapperspb.UInt32(1), EdsClusterConfig: got}
	if err := c.ValidateAll(); err != nil {
		t.Errorf("GoogleGRPC(...).EDS(...): Envoy would refuse it: %v", err)
	}
}

func read(t *testing.T, y string) *clusterv3.Cluster {
	t.Helper()
	j, err := yaml.YAMLToJSON([]byte(y))
	if err != nil {
		t.Fatal(err)
	}
	c := &clusterv3.Cluster{}
	if err := protojson.Unmarshal(j, c); err != nil {
		t.Fatal(err)
	}
	return c
}

// show returns a cluster as YAML.
func show(t *testing.T, c *clusterv3.Cluster) string {
	t.Helper()
	j, err := protojson.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	y, err := yaml.JSONToYAML(j)
	if err != nil {
		t.Fatal(err)
	}
	return string(y)
}

// TestDefaultCluster checks that a cluster without a template differs from Envoy Gateway's in nothing
// but what names its route.
func TestDefaultCluster(t *testing.T) {
	o := ClusterOptions{Name: name, List: name, Source: XDSTP(), Shape: &ir.Shape{LoadBalancer: ir.LeastRequest}, Protocol: ir.ProtocolHTTP, Shared: true}
	want, err := Cluster(read(t, template), o)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Cluster(nil, o)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("a cluster without a template should be like one of Envoy Gateway: -want, +got:\n%s", diff)
	}
	settings, err := NewSettings(read(t, template), nil, true)
	if err != nil {
		t.Fatal(err)
	}
	if !settings.Default() {
		t.Errorf("a cluster of Envoy Gateway without policies should have the default settings, got:\n%s", show(t, settings.Template))
	}
	if got, err = Cluster(settings.Template, o); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("a cluster with the settings of another should be like it: -want, +got:\n%s", diff)
	}
}
