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
	// sharedLimit is how many connections, waiting requests, requests and retries
	// all routes to one target may have together where no policy says so. Envoy's
	// own 1024 is meant for the cluster of one route.
	sharedLimit = 16384

	// routeRetries is how many retries Envoy Gateway allows a cluster at once, and
	// all that it sets, when no policy says anything
	// (buildXdsClusterCircuitBreaker in its internal/xds/translator/cluster.go).
	routeRetries = 1024
)

// ClusterOptions say what becomes of a cluster that Envoy Gateway made.
type ClusterOptions struct {
	Name string

	// List is the name of the cluster's endpoint list, from Source.
	List   string
	Source Source

	// Shape of the target that the cluster's endpoints belong to. Nil leaves health
	// checks, balancing and TLS as Envoy Gateway made them: the endpoints belong to
	// several targets, or to Services beside them.
	Shape    *ir.Shape
	Protocol ir.Protocol

	// CheckHost is what health checks over HTTP ask for when nobody set a host.
	CheckHost string

	// RouteHosts are the hosts that Envoy Gateway fills in when a policy's health
	// check has none.
	RouteHosts map[string]bool

	// HTTP2 is what a policy asks of HTTP/2, where that is spoken.
	HTTP2 ir.HTTP2

	// Pooled is set where the template is for backends of others, too, which may have
	// asked for HTTP/2.
	Pooled bool

	// Shared by routes: what names one of them is taken out, and limits are for
	// all of them.
	Shared bool
}

// Cluster makes a cluster of ours out of one that Envoy Gateway made, which is left
// as it is. What a policy has set in it stays; else the target's shape counts.
func Cluster(template *clusterv3.Cluster, o ClusterOptions) (*clusterv3.Cluster, error) {
	c := proto.CloneOf(template)
	if c == nil {
		c = &clusterv3.Cluster{}
	}
	c.Name = o.Name
	c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}
	c.EdsClusterConfig = o.Source.EDS(o.List)
	c.LoadAssignment = nil

	// These pick a socket by the metadata of an endpoint in Envoy Gateway's own list.
	c.TransportSocketMatches = nil

	if o.Shared {
		c.Metadata = nil
		c.AltStatName = ""
		raiseLimits(c)
	}
	if o.Protocol != ir.ProtocolUDP {
		noticeDeath(c)
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

func applyShape(c *clusterv3.Cluster, o ClusterOptions) error {
	if err := balance(c, o.Shape.LoadBalancer); err != nil {
		return err
	}
	if c.CommonLbConfig == nil {
		c.CommonLbConfig = &clusterv3.Cluster_CommonLbConfig{}
	}
	if c.CommonLbConfig.HealthyPanicThreshold == nil {
		// Sick endpoints get nothing while a lower priority has healthy ones.
		c.CommonLbConfig.HealthyPanicThreshold = &typev3.Percent{}
	}
	if c.CommonLbConfig.UpdateMergeWindow == nil {
		// Envoy gathers changes of health for a second after each change of the
		// endpoints: a new endpoint, though found healthy at once, would get
		// nothing for that long, and if it is the only one, all would fail.
		c.CommonLbConfig.UpdateMergeWindow = durationpb.New(0)
	}
	checkHealth(c, o)
	if c.OutlierDetection == nil {
		c.OutlierDetection = outlierDetection(o.Shape.OutlierDetection)
	}
	return speakTLS(c, o.Shape.TLS, o.Shape.RemoteTLS)
}

// raiseLimits of circuit breakers that no policy set.
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

// packAny marshals a message so that equal ones have equal bytes: Envoy Gateway hashes them.
func packAny(m proto.Message) (*anypb.Any, error) {
	a := &anypb.Any{}
	return a, anypb.MarshalFrom(a, m, proto.MarshalOptions{Deterministic: true})
}
