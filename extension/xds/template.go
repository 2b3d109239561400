// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Defaults of Envoy Gateway's clusters (its internal/xds/translator, cluster.go and listener.go).
const (
	connectTimeout   = 10 * time.Second
	bufferLimit      = 32768
	streamWindow     = 64 << 10
	connectionWindow = 1 << 20
)

// defaultCluster returns a cluster as Envoy Gateway makes it for a rule without policies
// (buildXdsCluster in its internal/xds/translator/cluster.go), without what names a route. It is
// the only origin of clusters that Envoy Gateway does not make: Envoy's own defaults differ. For
// example, without IgnoreHealthOnHostRemoval Envoy sends requests to a removed endpoint as long as
// its health check succeeds.
func defaultCluster() *clusterv3.Cluster {
	return &clusterv3.Cluster{
		DnsLookupFamily:               clusterv3.Cluster_V4_PREFERRED,
		CommonLbConfig:                &clusterv3.Cluster_CommonLbConfig{},
		PerConnectionBufferLimitBytes: wrapperspb.UInt32(bufferLimit),
		IgnoreHealthOnHostRemoval:     true,
		ConnectTimeout:                durationpb.New(connectTimeout),
		CircuitBreakers: &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{
			Priority: corev3.RoutingPriority_DEFAULT, MaxRetries: wrapperspb.UInt32(routeRetries),
		}}},
	}
}
