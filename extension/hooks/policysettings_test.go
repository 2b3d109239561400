// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	clusterprovidedv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/cluster_provided/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// A change makes a cluster as Envoy Gateway does with a BackendTrafficPolicy, or for other backends.
type change = func(*clusterv3.Cluster)

// settingChanges returns changes for settings of a BackendTrafficPolicy, of the EnvoyProxy and of a
// ClientTrafficPolicy.
func settingChanges() map[string]change {
	http := func(o *httpv3.HttpProtocolOptions) change {
		if o.UpstreamProtocolOptions == nil {
			o.UpstreamProtocolOptions = &httpv3.HttpProtocolOptions_ExplicitHttpConfig_{ExplicitHttpConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig{
				ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_HttpProtocolOptions{},
			}}
		}
		return withHTTP(o)
	}
	return map[string]change{
		"ConnectTimeout": slowConnect,
		"IdleTimeout":    http(&httpv3.HttpProtocolOptions{CommonHttpProtocolOptions: &corev3.HttpProtocolOptions{IdleTimeout: durationpb.New(time.Minute)}}),
		"HTTP1": http(&httpv3.HttpProtocolOptions{UpstreamProtocolOptions: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_{
			ExplicitHttpConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig{ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_HttpProtocolOptions{
				HttpProtocolOptions: &corev3.Http1ProtocolOptions{EnableTrailers: true},
			}},
		}}),
		"ClientProtocol": http(&httpv3.HttpProtocolOptions{UpstreamProtocolOptions: &httpv3.HttpProtocolOptions_UseDownstreamProtocolConfig{
			UseDownstreamProtocolConfig: &httpv3.HttpProtocolOptions_UseDownstreamHttpConfig{},
		}}),
		"AdmissionControl": http(&httpv3.HttpProtocolOptions{HttpFilters: []*hcmv3.HttpFilter{{Name: "envoy.filters.http.admission_control"}, {Name: upstreamCodec}}}),
		"CircuitBreaker": func(c *clusterv3.Cluster) {
			c.CircuitBreakers.Thresholds[0].MaxConnections = wrapperspb.UInt32(7)
			c.CircuitBreakers.PerHostThresholds = []*clusterv3.CircuitBreakers_Thresholds{{MaxConnections: wrapperspb.UInt32(2)}}
		},
		"LoadBalancer": maglev,
		"Zone":         local,
		"Keepalive": func(c *clusterv3.Cluster) {
			c.UpstreamConnectionOptions = &clusterv3.UpstreamConnectionOptions{TcpKeepalive: &corev3.TcpKeepalive{KeepaliveTime: wrapperspb.UInt32(9)}}
		},
		"Preconnect": func(c *clusterv3.Cluster) {
			c.PreconnectPolicy = &clusterv3.Cluster_PreconnectPolicy{PerUpstreamPreconnectRatio: wrapperspb.Double(1.5)}
		},
		"Buffer":         func(c *clusterv3.Cluster) { c.PerConnectionBufferLimitBytes = wrapperspb.UInt32(1) },
		"TCPHealthCheck": checked,
		"HTTPHealthCheck": func(c *clusterv3.Cluster) {
			checked(c)
			c.HealthChecks[0].HealthChecker = &corev3.HealthCheck_HttpHealthCheck_{HttpHealthCheck: &corev3.HealthCheck_HttpHealthCheck{Path: "/live", Host: "health.example.com"}}
		},
		"PanicThreshold": func(c *clusterv3.Cluster) {
			c.CommonLbConfig = &clusterv3.Cluster_CommonLbConfig{HealthyPanicThreshold: &typev3.Percent{Value: 9}}
		},
		"Outliers": func(c *clusterv3.Cluster) {
			c.OutlierDetection = &clusterv3.OutlierDetection{Consecutive_5Xx: wrapperspb.UInt32(3)}
		},
		"ProxyProtocol": proxied,
		"Stats":         func(c *clusterv3.Cluster) { c.TrackClusterStats = &clusterv3.TrackClusterStats{PerEndpointStats: true} },
		"None":          func(*clusterv3.Cluster) {},
	}
}

const upstreamCodec = "envoy.extensions.filters.http.upstream_codec.v3.UpstreamCodec"

// backendChanges returns changes that belong to the backends of a route.
func backendChanges() map[string]change {
	// auto adds the options of a cluster whose backends all speak TLS.
	auto := func(c *clusterv3.Cluster) {
		withHTTP(&httpv3.HttpProtocolOptions{
			UpstreamProtocolOptions: &httpv3.HttpProtocolOptions_AutoConfig{AutoConfig: &httpv3.HttpProtocolOptions_AutoHttpConfig{
				HttpProtocolOptions: &corev3.Http1ProtocolOptions{},
				Http2ProtocolOptions: &corev3.Http2ProtocolOptions{
					InitialStreamWindowSize: wrapperspb.UInt32(64 << 10), InitialConnectionWindowSize: wrapperspb.UInt32(1 << 20),
				},
			}},
			UpstreamHttpProtocolOptions: &corev3.UpstreamHttpProtocolOptions{AutoSni: true, AutoSanValidation: true},
		})(c)
		c.TransportSocket = &corev3.TransportSocket{
			Name: "dummy.transport_socket", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: toAny(&tlsv3.UpstreamTlsContext{Sni: "plain.example.com"})},
		}
	}
	return map[string]change{
		"None": func(*clusterv3.Cluster) {},
		"TLS":  func(c *clusterv3.Cluster) { tlsSibling(c); auto(c) },
		"HTTP2": withHTTP(&httpv3.HttpProtocolOptions{UpstreamProtocolOptions: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_{
			ExplicitHttpConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig{ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{
				Http2ProtocolOptions: &corev3.Http2ProtocolOptions{
					InitialStreamWindowSize: wrapperspb.UInt32(64 << 10), InitialConnectionWindowSize: wrapperspb.UInt32(1 << 20),
				},
			}},
		}}),
		"FQDN": fqdnSibling,
		"DynamicResolver": func(c *clusterv3.Cluster) {
			auto(c)
			c.ClusterDiscoveryType = &clusterv3.Cluster_ClusterType{ClusterType: &clusterv3.Cluster_CustomClusterType{Name: "envoy.clusters.dynamic_forward_proxy"}}
			c.LoadBalancingPolicy = &clusterv3.LoadBalancingPolicy{Policies: []*clusterv3.LoadBalancingPolicy_Policy{{TypedExtensionConfig: &corev3.TypedExtensionConfig{
				Name: "envoy.load_balancing_policies.cluster_provided", TypedConfig: toAny(&clusterprovidedv3.ClusterProvided{}),
			}}}}
		},
		"Credentials": withHTTP(&httpv3.HttpProtocolOptions{
			UpstreamProtocolOptions: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_{ExplicitHttpConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig{
				ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_HttpProtocolOptions{},
			}},
			HttpFilters: []*hcmv3.HttpFilter{{Name: "envoy.filters.http.credential_injector/api-key"}, {Name: upstreamCodec}},
		}),
		"Names": func(c *clusterv3.Cluster) { c.AltStatName, c.Metadata = "app", ofResource("HTTPRoute", "app", "") },
	}
}

// sends returns a policy's rule that sends to api.
func sends() *ir.PolicyRule {
	return &ir.PolicyRule{Name: "a", Backends: []ir.BackendRef{ours(0, "api", 1)}}
}

// translateTwice returns the result of a message, after checks that hold for all messages.
func translateTwice(t *testing.T, c ir.Contents, resources Resources) Resources {
	t.Helper()
	s := ir.NewSnapshot(c)
	reversed := clone(resources)
	out, _ := Translate(s, testSource, resources)
	if err := validate(out); err != nil {
		t.Errorf("Translate(...): Envoy Gateway would refuse it: %v", err)
	}
	want := marshal(t, out)
	slices.Reverse(reversed.Clusters)
	same, _ := Translate(s, testSource, reversed)
	if diff := cmp.Diff(marshalAll(t, out.Routes), marshalAll(t, same.Routes)); diff != "" {
		t.Errorf("Translate(...): the order of clusters changes routes: -want, +got:\n%s", diff)
	}
	second, _ := Translate(s, testSource, clone(out))
	if diff := cmp.Diff(want, marshal(t, second)); diff != "" {
		t.Errorf("Translate(Translate(...)): -want, +got:\n%s", diff)
	}
	return out
}

// clusterNamed returns the only cluster whose name begins with the prefix.
func clusterNamed(t *testing.T, r Resources, prefix string) *clusterv3.Cluster {
	t.Helper()
	var out []*clusterv3.Cluster
	for _, c := range r.Clusters {
		if strings.HasPrefix(c.GetName(), prefix) {
			out = append(out, c)
		}
	}
	if len(out) != 1 {
		t.Fatalf("want one cluster %s..., got %d", prefix, len(out))
	}
	return out[0]
}

// TestPolicySettings checks that the clusters of a policy's backends have the settings that Envoy
// Gateway gave the cluster of the route, field by field.
func TestPolicySettings(t *testing.T) {
	const apiPolicy, apiPresents = policyPrefix + "services/default/api/80/http", presentingPrefix + "default/client/policy/services/default/api/80/http"
	pair := ir.NewKeyPair([]byte("chain"), []byte("key"), &x509.Certificate{})
	for name, set := range settingChanges() {
		for _, presented := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%t", name, presented), func(t *testing.T) {
				rule := sends()
				contents := ir.Contents{
					Routes:  []*ir.Route{route(ir.KindHTTPRoute, "app", ir.Rule{Name: "first", Backends: []ir.BackendRef{ours(0, "web", 1)}})},
					Targets: targets("web", "api"), Policies: []*ir.RoutePolicy{policy("p", toRoute(""), rule)},
					Tunings:  map[ir.RouteKey]map[string]ir.Tuning{routeKey(ir.KindHTTPRoute, "app"): {"first": {HealthPort: 9}}},
					KeyPairs: map[types.NamespacedName]*ir.KeyPair{nn("default", "client"): pair},
				}
				cluster := apiPolicy
				if presented {
					rule.Certificate = &ir.ClientCertificate{Secret: nn("default", "client")}
					speakTLS(contents.Targets)
					cluster = apiPresents
				}
				resources := policed()
				set(resources.Clusters[0])
				out := translateTwice(t, contents, resources)
				own, got := clusterNamed(t, out, webHTTP), clusterNamed(t, out, cluster)
				want := []string(nil)
				if presented {
					want = []string{"transportSocket"}
				}
				if diff := cmp.Diff(want, differing(own, got)); diff != "" {
					t.Errorf("the clusters of the route and of its policy differ: -want, +got:\n%s", diff)
				}
				list := strings.Replace(own.GetEdsClusterConfig().GetServiceName(), "/web/", "/api/", 1)
				if diff := cmp.Diff(list, got.GetEdsClusterConfig().GetServiceName()); diff != "" {
					t.Errorf("the lists of the route and of its policy differ: -want, +got:\n%s", diff)
				}
				if common := got.GetName() == cluster; common != (name == "None") {
					t.Errorf("cluster %s is the common one: %t", got.GetName(), common)
				}
			})
		}
	}
}

// TestPolicySettingsOfOthers checks that these clusters get nothing of the route's backends, of
// whatever kind these are.
func TestPolicySettingsOfOthers(t *testing.T) {
	const apiPolicy = policyPrefix + "services/default/api/80/http"
	sets := settingChanges()
	for name, change := range backendChanges() {
		for _, set := range []string{"None", "ConnectTimeout", "ProxyProtocol", "Outliers"} {
			t.Run(name+"/"+set, func(t *testing.T) {
				contents := ir.Contents{Targets: targets("api"), Policies: []*ir.RoutePolicy{policy("p", toRoute(""), sends())}}
				plain, resources := policed(), policed()
				sets[set](plain.Clusters[0])
				change(resources.Clusters[0])
				sets[set](resources.Clusters[0])
				want := clusterNamed(t, translateTwice(t, contents, plain), apiPolicy)
				got := clusterNamed(t, translateTwice(t, contents, resources), apiPolicy)
				if diff := cmp.Diff(marshalAll(t, []*clusterv3.Cluster{want}), marshalAll(t, []*clusterv3.Cluster{got})); diff != "" {
					t.Errorf("the cluster depends on the backends of the route: %v", differing(want, got))
				}
			})
		}
	}
}

// TestPolicySettingsHosts checks that Envoy checks a policy's backends by their own name if the
// BackendTrafficPolicy has no host, and Envoy Gateway sets the route's.
func TestPolicySettingsHosts(t *testing.T) {
	resources := policed()
	checked(resources.Clusters[0])
	resources.Clusters[0].HealthChecks[0].HealthChecker = &corev3.HealthCheck_HttpHealthCheck_{HttpHealthCheck: &corev3.HealthCheck_HttpHealthCheck{Path: "/live", Host: "www.example.com"}}
	out := translateTwice(t, ir.Contents{Targets: targets("api"), Policies: []*ir.RoutePolicy{policy("p", toRoute(""), sends())}}, resources)
	var got []string
	for _, h := range clusterNamed(t, out, policyPrefix+"services/default/api/80/http").GetHealthChecks() {
		got = append(got, h.GetHttpHealthCheck().GetHost())
	}
	if diff := cmp.Diff([]string{"api"}, got); diff != "" {
		t.Errorf("hosts of health checks: -want, +got:\n%s", diff)
	}
}

// TestPolicySettingsGRPCCheck checks that a route's health check by gRPC applies to backends of the policy
// that speak HTTP/2 only: Envoy would refuse the cluster of others.
func TestPolicySettingsGRPCCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		speaks func(ir.Contents) ir.Contents
		client bool
		want   int
	}{
		"HTTP1":          {reason: "Envoy refuses this check for HTTP/1.", speaks: func(c ir.Contents) ir.Contents { return c }},
		"HTTP2":          {reason: "The check should apply.", speaks: http2, want: 1},
		"ClientProtocol": {reason: "A cluster that follows its clients may speak HTTP/2.", speaks: func(c ir.Contents) ir.Contents { return c }, client: true, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			resources := policed()
			backendChanges()["HTTP2"](resources.Clusters[0])
			if tc.client {
				settingChanges()["ClientProtocol"](resources.Clusters[0])
			}
			checked(resources.Clusters[0])
			resources.Clusters[0].HealthChecks[0].HealthChecker = &corev3.HealthCheck_GrpcHealthCheck_{GrpcHealthCheck: &corev3.HealthCheck_GrpcHealthCheck{}}
			contents := tc.speaks(ir.Contents{Targets: targets("api"), Policies: []*ir.RoutePolicy{policy("p", toRoute(""), sends())}})
			c := clusterNamed(t, translateTwice(t, contents, resources), policyPrefix+"services/default/api/80/http")
			if got := len(c.GetHealthChecks()); got != tc.want {
				t.Errorf("\n%s\nwant %d health checks, got %d", tc.reason, tc.want, got)
			}
		})
	}
}

// TestPolicySettingsHTTP2 checks that the HTTP/2 settings of a route whose backends speak HTTP/2 apply to
// backends of the policy that do, whether the index knows the settings or not.
func TestPolicySettingsHTTP2(t *testing.T) {
	const api = policyPrefix + "services/default/api/80/http"
	contents := func() ir.Contents {
		return http2(ir.Contents{Targets: targets("web", "api"), Policies: []*ir.RoutePolicy{policy("p", toRoute(""), sends())}})
	}
	seen := ir.HTTP2{
		StreamWindow: 70000, Streams: 7, OnInvalidMessage: ir.EndStream, Interval: time.Second, Timeout: 2 * time.Second, Idle: 3 * time.Second, Jitter: 4, JitterSet: true,
	}
	tunedContents := contents()
	tunedContents.Routes = []*ir.Route{route(ir.KindHTTPRoute, "app", ir.Rule{Name: "first", Backends: []ir.BackendRef{ours(0, "web", 1)}})}
	tunedContents.Tunings = map[ir.RouteKey]map[string]ir.Tuning{routeKey(ir.KindHTTPRoute, "app"): {"first": {HTTP2: seen}}}
	out := translateTwice(t, tunedContents, policed())
	own, want := clusterNamed(t, out, webHTTP), clusterNamed(t, out, api)
	if diff := differing(own, want); len(diff) > 0 {
		t.Errorf("the clusters of the route and of its policy differ in %v", diff)
	}
	// A Service that speaks HTTP/2 has the same options.
	resources := policed()
	resources.Clusters[0].TypedExtensionProtocolOptions = own.GetTypedExtensionProtocolOptions()
	got := clusterNamed(t, translateTwice(t, contents(), resources), api)
	if diff := cmp.Diff(marshalAll(t, []*clusterv3.Cluster{want}), marshalAll(t, []*clusterv3.Cluster{got})); diff != "" {
		t.Errorf("the cluster of a policy lacks HTTP/2 settings: %v", differing(want, got))
	}
}

// TestPolicySettingsShared checks that routes with the same settings share the clusters of a policy of
// their Gateway, and that others do not: also in a namespace with an unlucky name, and with Envoy
// Gateway's clusters for each backend or for several routes.
func TestPolicySettingsShared(t *testing.T) {
	for _, namespace := range []string{"default", "settings"} {
		t.Run(namespace, func(t *testing.T) {
			c := ir.Contents{Targets: targets("api")}
			for _, target := range c.Targets {
				target.Key.Namespace = namespace
			}
			backend := ours(0, "api", 1)
			backend.Namespace = namespace
			rule := &ir.PolicyRule{Name: "a", Matches: []ir.PolicyMatch{under("/a")}, Backends: []ir.BackendRef{backend}}
			c.Policies = []*ir.RoutePolicy{policy("p", toGateway(""), rule, denies("b", under("/b")))}
			sets := settingChanges()
			resources := policed()
			resources.Clusters = nil
			var routes []*routev3.Route
			for i, target := range []struct {
				set     string
				cluster string
			}{
				{"None", ""}, {"ConnectTimeout", ""}, {"Buffer", ""}, {"ConnectTimeout", "/backend/3"}, {"None", "/backend/0"}, {"ConnectTimeout", "merged"},
			} {
				k := ruleKey{route: routeKey(ir.KindHTTPRoute, fmt.Sprintf("app-%d", i))}
				cluster := k.cluster() + target.cluster
				if target.cluster == "merged" {
					cluster = "service/default/plain/8080"
				}
				resources.Clusters = append(resources.Clusters, egCluster(cluster, sets[target.set]))
				r := egRoute(k.cluster()+"/match/0/www_example_com", prefix("/"), &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_WeightedClusters{
					WeightedClusters: &routev3.WeightedCluster{Clusters: []*routev3.WeightedCluster_ClusterWeight{{Name: cluster, Weight: wrapperspb.UInt32(1)}}},
				}})
				r.Metadata = ofResource("HTTPRoute", k.route.Name, "")
				routes = append(routes, r)
			}
			redirect := egRoute("httproute/default/old/rule/0/match/0/www_example_com", prefix("/old"), nil)
			redirect.Action = &routev3.Route_Redirect{Redirect: &routev3.RedirectAction{HostRedirect: "www.example.com"}}
			redirect.Metadata = ofResource("HTTPRoute", "old", "")
			resources.Routes[0].VirtualHosts[0].Routes = slices.Concat(routes, []*routev3.Route{redirect})
			out := translateTwice(t, c, resources)
			var got []string
			names := map[string]string{}
			for _, r := range out.Routes[0].GetVirtualHosts()[0].GetRoutes() {
				if !strings.HasPrefix(r.GetName(), policyPrefix) || r.GetRoute() == nil {
					continue
				}
				cluster := r.GetRoute().GetCluster()
				if names[cluster] == "" {
					names[cluster] = string(rune('A' + len(names)))
				}
				got = append(got, names[cluster])
			}
			if diff := cmp.Diff([]string{"A", "B", "C", "B", "A", "B", "A"}, got); diff != "" {
				t.Errorf("clusters of the policy: -want, +got:\n%s", diff)
			}
			if names[policyPrefix+"services/"+namespace+"/api/80/http"] != "A" {
				t.Errorf("want the common cluster for routes without settings, got %v", names)
			}
		})
	}
}
