// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// What stands in for values of a shape that were left out: Envoy refuses a check
// without them. They are the defaults of our kinds.
const (
	checkInterval = 10 * time.Second
	checkTimeout  = 3 * time.Second
	checkHealthy  = 2
	checkSick     = 3

	outlierInterval = 30 * time.Second
	outlierEjection = 30 * time.Second
	maxPercent      = 100
)

// checkHealth adds the shape's check where no policy has one, and gives those of a
// policy the target's host where Envoy Gateway filled in a route's. A policy cannot say
// how often a cluster without traffic is checked: it is as often.
func checkHealth(c *clusterv3.Cluster, o ClusterOptions) {
	host := o.CheckHost
	if o.Shape.HealthCheck != nil && o.Shape.HealthCheck.Host != "" {
		host = o.Shape.HealthCheck.Host
	}
	if len(c.HealthChecks) == 0 {
		// Nothing that a datagram's receiver must answer is known.
		if o.Shape.HealthCheck != nil && o.Protocol != ir.ProtocolUDP {
			p := o.Protocol
			if o.Shape.HTTP2 {
				p = ir.ProtocolGRPC
			}
			c.HealthChecks = []*corev3.HealthCheck{healthCheck(o.Shape.HealthCheck, host, p)}
		}
		return
	}
	for _, hc := range c.HealthChecks {
		evenIdle(hc)
		h := hc.GetHttpHealthCheck()
		if h == nil {
			continue
		}
		if h.Host == "" || o.Shared && o.RouteHosts[h.Host] {
			h.Host = host
		}
	}
}

func healthCheck(h *ir.HealthCheck, host string, p ir.Protocol) *corev3.HealthCheck {
	out := &corev3.HealthCheck{
		Interval:           durationpb.New(positive(h.Interval, checkInterval)),
		Timeout:            durationpb.New(positive(h.Timeout, checkTimeout)),
		HealthyThreshold:   wrapperspb.UInt32(orDefault(h.Healthy, checkHealthy)),
		UnhealthyThreshold: wrapperspb.UInt32(orDefault(h.Unhealthy, checkSick)),
	}
	evenIdle(out)
	if h.Path == "" || p == ir.ProtocolTCP {
		out.HealthChecker = &corev3.HealthCheck_TcpHealthCheck_{TcpHealthCheck: &corev3.HealthCheck_TcpHealthCheck{}}
		return out
	}
	check := &corev3.HealthCheck_HttpHealthCheck{
		Path: h.Path,
		Host: host,
		// 2xx and 3xx, the end excluded.
		ExpectedStatuses: []*typev3.Int64Range{{Start: 200, End: 400}},
	}
	if p == ir.ProtocolGRPC {
		check.CodecClientType = typev3.CodecClientType_HTTP2
	}
	out.HealthChecker = &corev3.HealthCheck_HttpHealthCheck_{HttpHealthCheck: check}
	return out
}

// evenIdle has clusters without traffic checked as often as others, unless it is set
// otherwise. Envoy's default of 60 s would leave a dead endpoint in use for a minute after
// the first request to a cluster.
func evenIdle(h *corev3.HealthCheck) {
	if h.NoTrafficInterval == nil {
		h.NoTrafficInterval = h.Interval
	}
	if h.NoTrafficHealthyInterval == nil {
		h.NoTrafficHealthyInterval = h.NoTrafficInterval
	}
}

func outlierDetection(o *ir.OutlierDetection) *clusterv3.OutlierDetection {
	if o == nil {
		return nil
	}
	out := &clusterv3.OutlierDetection{
		Interval:                       durationpb.New(positive(o.Interval, outlierInterval)),
		BaseEjectionTime:               durationpb.New(positive(o.BaseEjectionTime, outlierEjection)),
		MaxEjectionPercent:             wrapperspb.UInt32(min(o.MaxEjectionPercent, maxPercent)),
		SplitExternalLocalOriginErrors: o.SplitLocalOriginErrors,
		// Envoy detects by success rates too unless told not to.
		EnforcingSuccessRate: wrapperspb.UInt32(0),
	}
	if o.Consecutive5xx > 0 {
		out.Consecutive_5Xx = wrapperspb.UInt32(o.Consecutive5xx)
		out.EnforcingConsecutive_5Xx = wrapperspb.UInt32(maxPercent)
	}
	if o.ConsecutiveGatewayFailure > 0 {
		out.ConsecutiveGatewayFailure = wrapperspb.UInt32(o.ConsecutiveGatewayFailure)
		// Counted, but not acted upon by default.
		out.EnforcingConsecutiveGatewayFailure = wrapperspb.UInt32(maxPercent)
		if o.SplitLocalOriginErrors {
			// Failures of the way there are counted apart, and acted upon after
			// five by default.
			out.ConsecutiveLocalOriginFailure = wrapperspb.UInt32(o.ConsecutiveGatewayFailure)
		}
	}
	return out
}

func positive(d, otherwise time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return otherwise
}

func orDefault(n, otherwise uint32) uint32 {
	if n > 0 {
		return n
	}
	return otherwise
}
