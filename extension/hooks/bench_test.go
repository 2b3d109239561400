// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"fmt"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// BenchmarkTranslate measures the time that the hook adds to a translation: with one target for all
// routes, with one target per route, and with routes that name no Tailscale backend.
func BenchmarkTranslate(b *testing.B) {
	for _, n := range []int{1000, 5000} {
		b.Run(fmt.Sprintf("OneTarget/%d", n), func(b *testing.B) { benchmark(b, n, func(int) string { return "web" }) })
		b.Run(fmt.Sprintf("Distinct/%d", n), func(b *testing.B) { benchmark(b, n, func(i int) string { return fmt.Sprintf("web-%d", i) }) })
		b.Run(fmt.Sprintf("None/%d", n), func(b *testing.B) { benchmark(b, n, func(int) string { return "" }) })
	}
}

func benchmark(b *testing.B, n int, target func(i int) string) {
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
		clusters = append(clusters, egCluster(cluster))
		routes = append(routes, egRoute(cluster+"/match/0/"+name, prefix("/"), to(cluster)))
	}
	s := ir.NewSnapshot(c)
	in := Resources{Clusters: clusters, Routes: egRoutes(routes...)}
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		fresh := clone(in)
		b.StartTimer()
		Translate(s, testSource, fresh)
	}
}
