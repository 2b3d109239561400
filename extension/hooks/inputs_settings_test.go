//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

// backendFields are the fields that a policy's cluster need not have like the cluster of the route,
// because they belong to backends or names. Some of their parts are compared below.
var backendFields = map[protoreflect.Name]bool{
	"type": true, "cluster_type": true, "load_assignment": true, "transport_socket": true, "transport_socket_matches": true,
	"typed_extension_protocol_options": true, "load_balancing_policy": true, "circuit_breakers": true, "health_checks": true,
	"common_lb_config": true, "upstream_bind_config": true,
}

// settings checks that the clusters of the policies' own backends have the settings that Envoy Gateway
// gave the cluster of the same rule.
func (c *inputCheck) settings() {
	c.Helper()
	previous, updated := byName(c.message.GetClusters()), byName(c.answer.GetClusters())
	for _, config := range c.answer.GetRoutes() {
		for _, v := range config.GetVirtualHosts() {
			var policies []*routev3.Route
			for _, r := range v.GetRoutes() {
				if strings.HasPrefix(r.GetName(), policyPrefix) {
					policies = append(policies, r)
					continue
				}
				k, _, ok := parseRule(r.GetName())
				base := previous[k.cluster()]
				for i := 0; base == nil && i < 16; i++ {
					base = previous[k.backend(i)]
				}
				if ok && base != nil {
					c.sentWith(base, updated, policies)
				}
				policies = nil
			}
		}
	}
}

func byName(clusters []*clusterv3.Cluster) map[string]*clusterv3.Cluster {
	out := map[string]*clusterv3.Cluster{}
	for _, c := range clusters {
		out[c.GetName()] = c
	}
	return out
}

// sentWith checks the clusters that policies' routes send to.
func (c *inputCheck) sentWith(base *clusterv3.Cluster, updated map[string]*clusterv3.Cluster, policies []*routev3.Route) {
	c.Helper()
	for _, r := range policies {
		for _, w := range r.GetRoute().GetWeightedClusters().GetClusters() {
			if other := updated[w.GetName()]; other != nil && strings.HasPrefix(other.GetName(), policyPrefix) {
				for _, f := range unlike(base, other) {
					c.Errorf("%s: %s of %s is not the one of %s:\n%v\n%v", r.GetName(), f, other.GetName(), base.GetName(), other, base)
				}
			}
		}
	}
}

// unlike returns the settings of a route's cluster that a policy's cluster lacks.
func unlike(base, other *clusterv3.Cluster) []string {
	var out []string
	want, got := base.ProtoReflect(), other.ProtoReflect()
	fields := want.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if !identityFields[f.Name()] && !backendFields[f.Name()] && want.Has(f) && !want.Get(f).Equal(got.Get(f)) {
			out = append(out, string(f.Name()))
		}
	}
	add := func(name string, ok bool) {
		if !ok {
			out = append(out, name)
		}
	}
	checks := xds.ForHTTP1(&clusterv3.Cluster{HealthChecks: base.GetHealthChecks(), TypedExtensionProtocolOptions: other.GetTypedExtensionProtocolOptions()}).GetHealthChecks()
	add("health_checks", len(checks) == 0 || slices.EqualFunc(checks, other.GetHealthChecks(), sameCheck))
	add("panic threshold", base.GetCommonLbConfig().GetHealthyPanicThreshold() == nil || proto.Equal(base.GetCommonLbConfig().GetHealthyPanicThreshold(), other.GetCommonLbConfig().GetHealthyPanicThreshold()))
	for _, p := range base.GetCircuitBreakers().GetThresholds() {
		add("circuit_breakers", slices.ContainsFunc(other.GetCircuitBreakers().GetThresholds(), func(o *clusterv3.CircuitBreakers_Thresholds) bool { return keeps(p, o) }))
	}
	add("per-host limits", slices.EqualFunc(base.GetCircuitBreakers().GetPerHostThresholds(), other.GetCircuitBreakers().GetPerHostThresholds(), func(a, b *clusterv3.CircuitBreakers_Thresholds) bool { return proto.Equal(a, b) }))
	wantHTTP, gotHTTP := httpOf(base), httpOf(other)
	add("common HTTP options", proto.Equal(wantHTTP.GetCommonHttpProtocolOptions(), gotHTTP.GetCommonHttpProtocolOptions()))
	add("the client's protocol", proto.Equal(wantHTTP.GetUseDownstreamProtocolConfig(), gotHTTP.GetUseDownstreamProtocolConfig()))
	add("HTTP/1 options", gotHTTP.GetExplicitHttpConfig().GetHttp2ProtocolOptions() != nil || wantHTTP.GetExplicitHttpConfig().GetHttpProtocolOptions() == nil || proto.Equal(&corev3.Http1ProtocolOptions{}, wantHTTP.GetExplicitHttpConfig().GetHttpProtocolOptions()) ||
		proto.Equal(wantHTTP.GetExplicitHttpConfig().GetHttpProtocolOptions(), gotHTTP.GetExplicitHttpConfig().GetHttpProtocolOptions()))
	if name := base.GetLoadBalancingPolicy().GetPolicies()[0].GetTypedExtensionConfig().GetName(); name != "envoy.load_balancing_policies.least_request" && name != "envoy.load_balancing_policies.cluster_provided" {
		add("load_balancing_policy", proto.Equal(base.GetLoadBalancingPolicy(), other.GetLoadBalancingPolicy()))
	}
	const proxyProtocol = "envoy.transport_sockets.upstream_proxy_protocol"
	add("PROXY protocol", (base.GetTransportSocket().GetName() == proxyProtocol) == (other.GetTransportSocket().GetName() == proxyProtocol) || len(base.GetTransportSocketMatches()) > 0)
	return out
}

// sameCheck compares health checks apart from the host, and from intervals without traffic.
func sameCheck(base, other *corev3.HealthCheck) bool {
	a, b := proto.CloneOf(base), proto.CloneOf(other)
	for _, h := range []*corev3.HealthCheck{a, b} {
		h.NoTrafficInterval, h.NoTrafficHealthyInterval = nil, nil
		if other := h.GetHttpHealthCheck(); other != nil {
			other.Host = ""
		}
	}
	return proto.Equal(a, b)
}

// keeps reports whether limits keep those that a policy set: Envoy Gateway sets one for retries itself.
func keeps(base, other *clusterv3.CircuitBreakers_Thresholds) bool {
	const common = 1024
	ok := base.GetPriority() == other.GetPriority()
	a, b := base.ProtoReflect(), other.ProtoReflect()
	a.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		ok = ok && (v.Equal(b.Get(f)) || f.Name() == "max_retries" && base.GetMaxRetries().GetValue() == common)
		return true
	})
	return ok
}

// httpOf returns the HTTP options of a cluster, or empty ones.
func httpOf(c *clusterv3.Cluster) *httpv3.HttpProtocolOptions {
	o := &httpv3.HttpProtocolOptions{}
	if a := c.GetTypedExtensionProtocolOptions()[httpOptionsName]; a != nil && a.UnmarshalTo(o) != nil {
		return nil
	}
	return o
}
