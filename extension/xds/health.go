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

// Defaults for values that a shape omits: Envoy refuses a check without them. They are those of our
// kinds.
const (
	checkInterval  = 10 * time.Second
	checkTimeout   = 3 * time.Second
	checkHealthy   = 2
	checkUnhealthy = 3

	outlierInterval = 30 * time.Second
	outlierEjection = 30 * time.Second
	maxPercent      = 100
)

// checkHealth adds the shape's check if no policy has one, and sets the target's host in a policy's
// check if Envoy Gateway set a route's. A policy cannot set the interval of checks without traffic:
// it is the same as with traffic.
func checkHealth(c *clusterv3.Cluster, o ClusterOptions) {
	host := o.CheckHost
	if o.Shape.HealthCheck != nil && o.Shape.HealthCheck.Host != "" {
		host = o.Shape.HealthCheck.Host
	}
	if len(c.HealthChecks) == 0 {
		// The receiver of a datagram need not answer a check.
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
		setIdleInterval(hc)
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
		UnhealthyThreshold: wrapperspb.UInt32(orDefault(h.Unhealthy, checkUnhealthy)),
	}
	setIdleInterval(out)
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

// setIdleInterval sets the interval of checks without traffic to the usual interval, unless it is
// set. With Envoy's default of 60 s a dead endpoint would stay in use for a minute after the first
// request to a cluster.
func setIdleInterval(h *corev3.HealthCheck) {
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
		// Otherwise Envoy also ejects by success rate.
		EnforcingSuccessRate: wrapperspb.UInt32(0),
	}
	if o.Consecutive5xx > 0 {
		out.Consecutive_5Xx = wrapperspb.UInt32(o.Consecutive5xx)
		out.EnforcingConsecutive_5Xx = wrapperspb.UInt32(maxPercent)
	}
	if o.ConsecutiveGatewayFailure > 0 {
		out.ConsecutiveGatewayFailure = wrapperspb.UInt32(o.ConsecutiveGatewayFailure)
		// By default Envoy counts them, but does not eject.
		out.EnforcingConsecutiveGatewayFailure = wrapperspb.UInt32(maxPercent)
		if o.SplitLocalOriginErrors {
			// With this split, Envoy counts connection failures separately, and by default ejects
			// after five.
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
