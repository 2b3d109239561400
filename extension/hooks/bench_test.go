// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// BenchmarkTranslate measures the time that the hook adds to a translation: with one target for all
// routes, with one target whose routes have a policy's health checks, with one target per route, and with routes that name no
// Tailscale backend.
func BenchmarkTranslate(b *testing.B) {
	for _, n := range []int{1000, 5000} {
		b.Run(fmt.Sprintf("OneTarget/%d", n), func(b *testing.B) { benchmark(b, n, func(int) string { return "web" }, nil) })
		b.Run(fmt.Sprintf("Checked/%d", n), func(b *testing.B) { benchmark(b, n, func(int) string { return "web" }, policyCheck) })
		b.Run(fmt.Sprintf("Distinct/%d", n), func(b *testing.B) { benchmark(b, n, func(i int) string { return fmt.Sprintf("web-%d", i) }, nil) })
		b.Run(fmt.Sprintf("None/%d", n), func(b *testing.B) { benchmark(b, n, func(int) string { return "" }, nil) })
	}
}

// BenchmarkPolicy measures the time that a TailscaleRoutePolicy of a Gateway with four rules adds.
func BenchmarkPolicy(b *testing.B) {
	for _, n := range []int{1000, 5000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			s, resources := policedRoutes(n)
			translations(b, s, resources)
		})
	}
}

// policedRoutes returns the resources of routes without Tailscale backends, and a snapshot with a
// policy of their Gateway that has a rule of each kind.
func policedRoutes(n int) (*ir.Snapshot, Resources) {
	var clusters []*clusterv3.Cluster
	var routes []*routev3.Route
	for i := range n {
		name := fmt.Sprintf("app-%d", i)
		cluster := "httproute/default/" + name + "/rule/0"
		clusters = append(clusters, egCluster(cluster))
		r := egRoute(cluster+"/match/0/"+name, prefix("/"), to(cluster))
		r.Metadata = ofResource("HTTPRoute", name, "")
		routes = append(routes, r)
	}
	configs := egRoutes(routes...)
	configs[0].VirtualHosts[0].Metadata = ofResource("Gateway", "gw", "http")
	p := policy("p", toGateway(""),
		denies("deny", under("/admin"), from("100.64.0.0/10")),
		&ir.PolicyRule{Name: "redirect", Redirect: &ir.PolicyRedirect{Scheme: "https", StatusCode: 301}, Matches: []ir.PolicyMatch{under("/old")}},
		&ir.PolicyRule{Name: "route", Backends: []ir.BackendRef{ours(0, "web", 1)}, Matches: []ir.PolicyMatch{under("/web")}},
		&ir.PolicyRule{Name: "limit", RateLimit: &ir.RateLimit{Requests: 3, Period: time.Second}, Matches: []ir.PolicyMatch{under("/slow")}},
	)
	return ir.NewSnapshot(ir.Contents{Policies: []*ir.RoutePolicy{p}, Targets: targets("web")}), Resources{Clusters: clusters, Routes: configs}
}

// policyCheck returns the health checks that a policy gives each cluster.
func policyCheck() []*corev3.HealthCheck {
	return []*corev3.HealthCheck{{
		Interval: durationpb.New(3 * time.Second), Timeout: durationpb.New(time.Second),
		HealthyThreshold: wrapperspb.UInt32(1), UnhealthyThreshold: wrapperspb.UInt32(2),
		HealthChecker: &corev3.HealthCheck_HttpHealthCheck_{HttpHealthCheck: &corev3.HealthCheck_HttpHealthCheck{Path: "/health", Host: "example.com"}},
	}}
}

func benchmark(b *testing.B, n int, target func(i int) string, checks func() []*corev3.HealthCheck) {
	b.Helper()
	var c ir.Contents
	var clusters []*clusterv3.Cluster
	var routes []*routev3.Route
	for i := range n {
		name := fmt.Sprintf("app-%d", i)
		cluster := "httproute/default/" + name + "/rule/0"
		backend := svc(0, 1)
		if t := target(i); t != "" {
			backend = ours(0, t, 1)
			c.Targets = append(c.Targets, &ir.Target{
				Key:   ir.TargetKey{Kind: ir.TargetServices, Namespace: "default", Name: t, Port: 80, Protocol: ir.ProtocolHTTP},
				Shape: ir.Shape{LoadBalancer: ir.LeastRequest, HealthCheck: &ir.HealthCheck{Path: "/health"}, OutlierDetection: &ir.OutlierDetection{Consecutive5xx: 3}},
			})
		}
		c.Routes = append(c.Routes, route(ir.KindHTTPRoute, name, rule(backend)))
		eg := egCluster(cluster)
		if checks != nil {
			eg.HealthChecks = checks()
		}
		clusters = append(clusters, eg)
		routes = append(routes, egRoute(cluster+"/match/0/"+name, prefix("/"), to(cluster)))
	}
	s := ir.NewSnapshot(c)
	resources := Resources{Clusters: clusters, Routes: egRoutes(routes...)}
	translations(b, s, resources)
}

func translations(b *testing.B, s *ir.Snapshot, resources Resources) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		fresh := clone(resources)
		b.StartTimer()
		Translate(s, testSource, fresh)
	}
}
