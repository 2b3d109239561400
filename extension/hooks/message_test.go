// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	xdsmatcherv3 "github.com/cncf/xds/go/xds/type/matcher/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tcpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	udpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/udp/udp_proxy/v3"
	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/common/v3"
	leastrequestv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/least_request/v3"
	maglevv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/maglev/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

// testSource of endpoints.
var testSource = xds.GoogleGRPC("ipv4:10.96.0.7:5006", "", xds.TLS{})

func testSources(bool) xds.Source { return testSource }

func toAny(m proto.Message) *anypb.Any {
	a := &anypb.Any{}
	if err := anypb.MarshalFrom(a, m, proto.MarshalOptions{Deterministic: true}); err != nil {
		panic(err)
	}
	return a
}

// egCluster returns a cluster as Envoy Gateway makes it for a custom backend
// (http-route-custom-backend-error.clusters.yaml among its goldens).
func egCluster(name string, change ...func(c *clusterv3.Cluster)) *clusterv3.Cluster {
	c := &clusterv3.Cluster{
		Name:                 name,
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{
			ServiceName: name,
			EdsConfig: &corev3.ConfigSource{
				ResourceApiVersion:    corev3.ApiVersion_V3,
				ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
			},
		},
		CommonLbConfig:                &clusterv3.Cluster_CommonLbConfig{},
		ConnectTimeout:                durationpb.New(10 * time.Second),
		DnsLookupFamily:               clusterv3.Cluster_V4_PREFERRED,
		IgnoreHealthOnHostRemoval:     true,
		PerConnectionBufferLimitBytes: wrapperspb.UInt32(32768),
		CircuitBreakers: &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{
			MaxRetries: wrapperspb.UInt32(1024),
		}}},
		LoadBalancingPolicy: &clusterv3.LoadBalancingPolicy{Policies: []*clusterv3.LoadBalancingPolicy_Policy{{
			TypedExtensionConfig: &corev3.TypedExtensionConfig{
				Name: "envoy.load_balancing_policies.least_request",
				TypedConfig: toAny(&leastrequestv3.LeastRequest{LocalityLbConfig: &commonv3.LocalityLbConfig{
					LocalityConfigSpecifier: &commonv3.LocalityLbConfig_LocalityWeightedLbConfig_{
						LocalityWeightedLbConfig: &commonv3.LocalityLbConfig_LocalityWeightedLbConfig{},
					},
				}}),
			},
		}}},
	}
	for _, fn := range change {
		fn(c)
	}
	return c
}

func slowConnect(c *clusterv3.Cluster) { c.ConnectTimeout = durationpb.New(time.Minute) }

func maglev(c *clusterv3.Cluster) {
	c.LoadBalancingPolicy.Policies[0].TypedExtensionConfig = &corev3.TypedExtensionConfig{
		Name: "envoy.load_balancing_policies.maglev", TypedConfig: toAny(&maglevv3.Maglev{}),
	}
}

// to returns a route's action to one cluster, or to several by weight: "a", or "a=1".
func to(clusters ...string) *routev3.RouteAction {
	if len(clusters) == 1 && !strings.Contains(clusters[0], "=") {
		return &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: clusters[0]}}
	}
	w := &routev3.WeightedCluster{}
	for _, c := range clusters {
		name, weight, _ := strings.Cut(c, "=")
		var n uint32
		if _, err := fmt.Sscan(weight, &n); err != nil {
			panic(err)
		}
		w.Clusters = append(w.Clusters, &routev3.WeightedCluster_ClusterWeight{Name: name, Weight: wrapperspb.UInt32(n)})
	}
	return &routev3.RouteAction{
		ClusterNotFoundResponseCode: routev3.RouteAction_INTERNAL_SERVER_ERROR,
		ClusterSpecifier:            &routev3.RouteAction_WeightedClusters{WeightedClusters: w},
	}
}

func egRoute(name string, m *routev3.RouteMatch, a *routev3.RouteAction) *routev3.Route {
	return &routev3.Route{Name: name, Match: m, Action: &routev3.Route_Route{Route: a}}
}

// prefix returns the match that Envoy Gateway makes of a PathPrefix.
func prefix(p string) *routev3.RouteMatch {
	if p == "/" {
		return &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}}
	}
	return &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_PathSeparatedPrefix{PathSeparatedPrefix: p}}
}

func header(m *routev3.RouteMatch, name, value string) *routev3.RouteMatch {
	m.Headers = append(m.Headers, &routev3.HeaderMatcher{
		Name: name,
		HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: &matcherv3.StringMatcher{
			MatchPattern: &matcherv3.StringMatcher_Exact{Exact: value},
		}},
	})
	return m
}

func mirrorTo(a *routev3.RouteAction, cluster string) *routev3.RouteAction {
	a.RequestMirrorPolicies = append(a.RequestMirrorPolicies, &routev3.RouteAction_RequestMirrorPolicy{Cluster: cluster})
	return a
}

func hashed(a *routev3.RouteAction) *routev3.RouteAction {
	a.HashPolicy = []*routev3.RouteAction_HashPolicy{{
		PolicySpecifier: &routev3.RouteAction_HashPolicy_ConnectionProperties_{
			ConnectionProperties: &routev3.RouteAction_HashPolicy_ConnectionProperties{SourceIp: true},
		},
	}}
	return a
}

func egRoutes(routes ...*routev3.Route) []*routev3.RouteConfiguration {
	return []*routev3.RouteConfiguration{{
		Name: "default/gw/http",
		VirtualHosts: []*routev3.VirtualHost{{
			Name:    "default/gw/http/www_example_com",
			Domains: []string{"www.example.com"},
			Routes:  routes,
		}},
	}}
}

func egTCP(name, cluster string) *listenerv3.Listener {
	return &listenerv3.Listener{
		Name:    "default/gw/tcp",
		Address: address(corev3.SocketAddress_TCP),
		FilterChains: []*listenerv3.FilterChain{{
			Name: name,
			Filters: []*listenerv3.Filter{{
				Name: "envoy.filters.network.tcp_proxy",
				ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: toAny(&tcpproxyv3.TcpProxy{
					StatPrefix:       "tcp-10080",
					ClusterSpecifier: &tcpproxyv3.TcpProxy_Cluster{Cluster: cluster},
				})},
			}},
		}},
	}
}

func egUDP(cluster string) *listenerv3.Listener {
	return &listenerv3.Listener{
		Name:    "default/gw/udp",
		Address: address(corev3.SocketAddress_UDP),
		ListenerFilters: []*listenerv3.ListenerFilter{{
			Name: "envoy.filters.udp_listener.udp_proxy",
			ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: toAny(&udpproxyv3.UdpProxyConfig{
				StatPrefix: "service",
				RouteSpecifier: &udpproxyv3.UdpProxyConfig_Matcher{Matcher: &xdsmatcherv3.Matcher{
					OnNoMatch: &xdsmatcherv3.Matcher_OnMatch{OnMatch: &xdsmatcherv3.Matcher_OnMatch_Action{
						Action: &xdscorev3.TypedExtensionConfig{
							Name:        "route",
							TypedConfig: toAny(&udpproxyv3.Route{Cluster: cluster}),
						},
					}},
				}},
			})},
		}},
	}
}

func address(p corev3.SocketAddress_Protocol) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: "0.0.0.0", Protocol: p, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 10080},
	}}}
}

// clone copies resources, so that one run does not change the input of another.
func clone(r Resources) Resources {
	return Resources{Gateways: r.Gateways, Clusters: cloneAll(r.Clusters), Listeners: cloneAll(r.Listeners), Routes: cloneAll(r.Routes), Secrets: cloneAll(r.Secrets)}
}

func cloneAll[T proto.Message](messages []T) []T {
	out := make([]T, 0, len(messages))
	for _, m := range messages {
		out = append(out, proto.CloneOf(m))
	}
	return out
}

// marshal returns the bytes of each resource.
func marshal(t testing.TB, r Resources) []string {
	t.Helper()
	out := marshalAll(t, r.Clusters)
	out = append(out, marshalAll(t, r.Listeners)...)
	out = append(out, marshalAll(t, r.Routes)...)
	return append(out, marshalAll(t, r.Secrets)...)
}

func marshalAll[T proto.Message](t testing.TB, messages []T) []string {
	t.Helper()
	out := make([]string, 0, len(messages))
	for _, m := range messages {
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(b))
	}
	return out
}

// validate checks resources as Envoy Gateway does before it publishes them.
func validate(r Resources) error {
	for _, c := range r.Clusters {
		if err := c.ValidateAll(); err != nil {
			return err
		}
	}
	for _, l := range r.Listeners {
		if err := l.ValidateAll(); err != nil {
			return err
		}
	}
	for _, c := range r.Routes {
		if err := c.ValidateAll(); err != nil {
			return err
		}
	}
	for _, s := range r.Secrets {
		if err := s.ValidateAll(); err != nil {
			return err
		}
	}
	return nil
}

// A view summarizes a message.
type view struct {
	// Clusters, each with the source of its endpoints: "NAME" with Envoy Gateway's source, "NAME <
	// LIST" with the extension's. # replaces hashes in names.
	Clusters []string

	// Sends are the destinations of routes and filters: "ROUTE > CLUSTER", or by weight.
	Sends []string
}

// hash matches the hash of a rule's name and backends.
var hash = regexp.MustCompile(`\b[0-9a-f]{16}\b`)

func viewOf(t testing.TB, r Resources) view {
	t.Helper()
	v := view{}
	for _, c := range r.Clusters {
		s := c.GetName()
		if c.GetEdsClusterConfig().GetEdsConfig().GetApiConfigSource() != nil {
			s += " < " + c.GetEdsClusterConfig().GetServiceName()
		}
		v.Clusters = append(v.Clusters, hash.ReplaceAllString(s, "#"))
	}
	for _, c := range r.Routes {
		for _, h := range c.GetVirtualHosts() {
			for _, route := range h.GetRoutes() {
				v.Sends = append(v.Sends, hash.ReplaceAllString(route.GetName()+" > "+actionView(route.GetRoute()), "#"))
			}
		}
	}
	for _, l := range r.Listeners {
		for _, c := range l.GetFilterChains() {
			v.Sends = append(v.Sends, c.GetName()+" > "+tcpView(t, c.GetFilters()[0].GetTypedConfig()))
		}
		for _, f := range l.GetListenerFilters() {
			v.Sends = append(v.Sends, "udp > "+udpView(t, f.GetTypedConfig()))
		}
	}
	return v
}

func actionView(a *routev3.RouteAction) string {
	parts := []string{}
	if a.GetCluster() != "" {
		parts = append(parts, a.GetCluster())
	}
	for _, c := range a.GetWeightedClusters().GetClusters() {
		parts = append(parts, fmt.Sprintf("%s=%d", c.GetName(), c.GetWeight().GetValue()))
		for _, h := range c.GetRequestHeadersToAdd() {
			parts = append(parts, "set", h.GetHeader().GetKey()+":", h.GetHeader().GetValue())
		}
		if c.GetHostRewriteLiteral() != "" {
			parts = append(parts, "as", c.GetHostRewriteLiteral())
		}
	}
	if a.GetWeightedClusters().GetUseHashPolicy().GetValue() {
		parts = append(parts, "by hash")
	}
	if a.GetClusterNotFoundResponseCode() != routev3.RouteAction_SERVICE_UNAVAILABLE {
		parts = append(parts, "else", a.GetClusterNotFoundResponseCode().String())
	}
	for _, m := range a.GetRequestMirrorPolicies() {
		parts = append(parts, "mirror", m.GetCluster())
	}
	return strings.Join(parts, " ")
}

func tcpView(t testing.TB, a *anypb.Any) string {
	t.Helper()
	p := &tcpproxyv3.TcpProxy{}
	if err := a.UnmarshalTo(p); err != nil {
		t.Fatal(err)
	}
	parts := []string{}
	for _, c := range p.GetWeightedClusters().GetClusters() {
		parts = append(parts, fmt.Sprintf("%s=%d", c.GetName(), c.GetWeight()))
	}
	return p.GetCluster() + strings.Join(parts, " ")
}

func udpView(t testing.TB, a *anypb.Any) string {
	t.Helper()
	p, r := &udpproxyv3.UdpProxyConfig{}, &udpproxyv3.Route{}
	if err := a.UnmarshalTo(p); err != nil {
		t.Fatal(err)
	}
	if err := p.GetMatcher().GetOnNoMatch().GetAction().GetTypedConfig().UnmarshalTo(r); err != nil {
		t.Fatal(err)
	}
	return r.GetCluster()
}
