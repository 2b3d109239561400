// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	aggregatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/aggregate/v3"
	"google.golang.org/protobuf/proto"
)

// Aggregate returns a cluster that sends requests to the first of other clusters with enough healthy
// endpoints. The template is the one whose place it takes in routes.
//
// A connection belongs to the cluster of its endpoint, so the settings of connections, health checks,
// balancing and circuit breakers are theirs. The aggregate needs what Envoy reads from the cluster that a
// route names: the filters and limits of upstream requests (Filter::decodeHeaders and UpstreamRequest in
// Envoy's source/common/router), its metadata for logs, and the panic threshold, by which it chooses
// among the clusters (AggregateClusterLoadBalancer in source/extensions/clusters/aggregate/cluster.h).
// Envoy also refuses options that negotiate HTTP by ALPN without a socket that does so.
func Aggregate(template *clusterv3.Cluster, name string, clusters ...string) (*clusterv3.Cluster, error) {
	config, err := packAny(&aggregatev3.ClusterConfig{Clusters: clusters})
	if err != nil {
		return nil, err
	}
	c := &clusterv3.Cluster{
		Name:     name,
		LbPolicy: clusterv3.Cluster_CLUSTER_PROVIDED,
		ClusterDiscoveryType: &clusterv3.Cluster_ClusterType{ClusterType: &clusterv3.Cluster_CustomClusterType{
			Name: "envoy.clusters.aggregate", TypedConfig: config,
		}},
		ConnectTimeout:                template.GetConnectTimeout(),
		PerConnectionBufferLimitBytes: template.GetPerConnectionBufferLimitBytes(),
		CircuitBreakers:               template.GetCircuitBreakers(),
		TypedExtensionProtocolOptions: template.GetTypedExtensionProtocolOptions(),
		TransportSocket:               onlySocket(template),
		Metadata:                      template.GetMetadata(),
	}
	if p := template.GetCommonLbConfig().GetHealthyPanicThreshold(); p != nil {
		c.CommonLbConfig = &clusterv3.Cluster_CommonLbConfig{HealthyPanicThreshold: p}
	}
	return proto.CloneOf(c), c.ValidateAll()
}

// Elsewhere returns a copy of Envoy Gateway's cluster for a Kubernetes Service, to build the cluster for
// the same Service in other clusters from. Envoy Gateway selects the TLS of a backend by metadata of its
// own endpoints (buildXdsCluster in its internal/xds/translator/cluster.go). Backends of other clusters speak
// the same.
func Elsewhere(template *clusterv3.Cluster) *clusterv3.Cluster {
	c := proto.CloneOf(template)
	c.TransportSocket = onlySocket(c)
	c.AltStatName = ""
	return c
}

// onlySocket returns the socket of a cluster of Envoy Gateway for one backend. It may be nil.
func onlySocket(c *clusterv3.Cluster) *corev3.TransportSocket {
	if m := c.GetTransportSocketMatches(); len(m) == 1 {
		return m[0].GetTransportSocket()
	}
	return c.GetTransportSocket()
}
