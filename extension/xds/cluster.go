// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

const (
	// sharedLimit is the number of connections, pending requests, requests and retries for all
	// routes to one target together, unless a policy sets another. Envoy's default of 1024 is meant
	// for the cluster of one route.
	sharedLimit = 16384

	// routeRetries is the number of concurrent retries that Envoy Gateway sets without a policy. It
	// sets no other limit then (buildXdsClusterCircuitBreaker in its
	// internal/xds/translator/cluster.go).
	routeRetries = 1024
)

// ClusterOptions describe how to change a cluster of Envoy Gateway.
type ClusterOptions struct {
	Name string

	// List is the name of the cluster's endpoint list, from Source.
	List   string
	Source Source

	// Shape of the endpoints' target. Nil keeps the health checks, balancing and TLS of Envoy
	// Gateway: the endpoints then belong to several targets, or to Services beside them.
	Shape    *ir.Shape
	Protocol ir.Protocol

	// CheckHost is the host in HTTP health checks unless a user sets one.
	CheckHost string

	// RouteHosts are the hosts that Envoy Gateway sets if a policy's health check has none.
	RouteHosts map[string]bool

	// HTTP2 is a policy's HTTP/2 settings, which apply to HTTP/2 only.
	HTTP2 ir.HTTP2

	// Pooled reports that the template is also for other backends, which may need HTTP/2.
	Pooled bool

	// Shared by routes: the cluster loses fields that name one route, and has limits for all
	// routes.
	Shared bool
}

// Cluster returns a cluster built from one of Envoy Gateway, which it does not change, or from the
// defaults of Envoy Gateway if template is nil. Settings of policies take precedence over the
// target's shape.
func Cluster(template *clusterv3.Cluster, o ClusterOptions) (*clusterv3.Cluster, error) {
	c := proto.CloneOf(template)
	if c == nil {
		c = defaultCluster()
	}
	c.Name = o.Name
	c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}
	c.EdsClusterConfig = o.Source.EDS(o.List)
	c.LoadAssignment = nil

	// These choose a socket by the metadata of endpoints in Envoy Gateway's own list.
	c.TransportSocketMatches = nil

	if o.Shared {
		c.Metadata = nil
		c.AltStatName = ""
		raiseLimits(c)
	}
	if o.Protocol != ir.ProtocolUDP {
		detectDeadPeers(c)
	}
	if o.Protocol == ir.ProtocolGRPC || o.Shape != nil && o.Shape.HTTP2 {
		if err := speakHTTP2(c, o.HTTP2); err != nil {
			return nil, err
		}
	}
	if o.Pooled && o.Protocol == ir.ProtocolHTTP && o.Shape != nil && !o.Shape.HTTP2 {
		if err := speakHTTP1(c); err != nil {
			return nil, err
		}
	}
	if o.Shape == nil {
		return c, nil
	}
	return c, applyShape(c, o)
}

// panicThreshold is the percentage of healthy endpoints of a priority below which Envoy ignores health,
// unless other priorities have enough healthy ones: requests that no healthy endpoint can take go to all
// endpoints, because the checks may be wrong. It is the smallest that Envoy knows: with 0 it answers 503,
// and with its default of 50 it sends requests to dead endpoints while some are healthy
// (recalculatePerPriorityPanic in load_balancer_impl.cc).
const panicThreshold = 1

func applyShape(c *clusterv3.Cluster, o ClusterOptions) error {
	if err := balance(c, o.Shape.LoadBalancer); err != nil {
		return err
	}
	if _, t, ok := ir.ParseTuning(o.List); ok && PrefersZone(o.Shape, t) {
		if err := preferZone(c, o.Shape.PreferZone); err != nil {
			return err
		}
	}
	if c.CommonLbConfig == nil {
		c.CommonLbConfig = &clusterv3.Cluster_CommonLbConfig{}
	}
	if c.CommonLbConfig.HealthyPanicThreshold == nil {
		c.CommonLbConfig.HealthyPanicThreshold = &typev3.Percent{Value: panicThreshold}
	}
	if c.CommonLbConfig.UpdateMergeWindow == nil {
		// By default Envoy merges health changes for a second after each change of the endpoints: a
		// new endpoint would get no requests during that second, although its check succeeds at
		// once, and if it is the only one, all requests would fail.
		c.CommonLbConfig.UpdateMergeWindow = durationpb.New(0)
	}
	checkHealth(c, o)
	if c.OutlierDetection == nil {
		c.OutlierDetection = outlierDetection(o.Shape.OutlierDetection)
	}
	return speakTLS(c, o.Shape.TLS, o.Shape.RemoteTLS)
}

// raiseLimits raises the limits of circuit breakers that no policy set.
func raiseLimits(c *clusterv3.Cluster) {
	if c.CircuitBreakers == nil {
		c.CircuitBreakers = &clusterv3.CircuitBreakers{}
	}
	t := defaultThreshold(c.CircuitBreakers)
	if proto.Equal(t, &clusterv3.CircuitBreakers_Thresholds{MaxRetries: wrapperspb.UInt32(routeRetries)}) {
		t.MaxRetries = nil
	}
	for _, limit := range []**wrapperspb.UInt32Value{&t.MaxConnections, &t.MaxPendingRequests, &t.MaxRequests, &t.MaxRetries} {
		if *limit == nil {
			*limit = wrapperspb.UInt32(sharedLimit)
		}
	}
}

func defaultThreshold(b *clusterv3.CircuitBreakers) *clusterv3.CircuitBreakers_Thresholds {
	for _, t := range b.GetThresholds() {
		if t.GetPriority() == corev3.RoutingPriority_DEFAULT {
			return t
		}
	}
	t := &clusterv3.CircuitBreakers_Thresholds{}
	b.Thresholds = append(b.Thresholds, t)
	return t
}

// packAny marshals a message so that equal messages have equal bytes: Envoy Gateway hashes them.
func packAny(m proto.Message) (*anypb.Any, error) {
	a := &anypb.Any{}
	return a, anypb.MarshalFrom(a, m, proto.MarshalOptions{Deterministic: true})
}
