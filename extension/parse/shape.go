// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"net"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/limits"
	"github.com/tailscale-gateway/tailscale-gateway/internal/service"
)

// HostName returns the host name of an endpoint. It is empty for an endpoint that has only
// an address, and for a discovered one.
func HostName(e gatewayv1alpha1.Endpoint) string {
	host := e.TailscaleFQDN
	if e.ExternalTarget != "" {
		if h, _, err := net.SplitHostPort(e.ExternalTarget); err == nil && net.ParseIP(h) == nil {
			host = h
		}
	}
	return ir.CanonicalHost(host)
}

// Delays returns the delays of a TailscaleServices.
func Delays(lb *gatewayv1alpha1.LoadBalancing) ir.Delays {
	d := ir.Delays{}
	if lb == nil {
		return d
	}
	if p := lb.FailoverPolicy; p != nil {
		d.Failover, d.Failback = duration(p.FailoverTimeout, 0), duration(p.FailbackDelay, 0)
	}
	if f := lb.Failover; f != nil && lb.Strategy == gatewayv1alpha1.StrategyFailover {
		d.Primary, d.PrimaryFailback = string(f.Primary), duration(f.FailbackDelay, failbackDelay)
	}
	return d
}

// failbackDelay is the schema's default for the strategy failover.
const failbackDelay = time.Minute

// duration returns d, or the alternative if d is nil.
func duration(d *metav1.Duration, otherwise time.Duration) time.Duration {
	if d == nil {
		return otherwise
	}
	return d.Duration
}

// healthOffline is the health in status.discoveredEndpoints of an offline device.
const healthOffline = "Offline"

// OfflineEndpoints returns the names of the endpoints whose devices the tailnet reports as
// offline.
func OfflineEndpoints(o *gatewayv1alpha1.TailscaleEndpoints) map[string]bool {
	var out map[string]bool
	for _, d := range o.Status.DiscoveredEndpoints {
		if d.Health != healthOffline {
			continue
		}
		if out == nil {
			out = map[string]bool{}
		}
		out[d.Name] = true
	}
	return out
}

// These are the schema's defaults, for objects that the API server did not validate.
const (
	DefaultHealthThreshold = 70

	outlierFailures   = 3
	outlierInterval   = 30 * time.Second
	outlierEjection   = 30 * time.Second
	outlierMaxPercent = 50
)

// ServicesShape returns the cluster settings of a TailscaleServices for one of its ports.
func ServicesShape(k ir.TargetKey, spec *gatewayv1alpha1.TailscaleServicesSpec) ir.Shape {
	s := ir.Shape{HealthThreshold: DefaultHealthThreshold, HTTP2: k.Protocol == ir.ProtocolGRPC}
	lb := spec.LoadBalancing
	if lb == nil {
		s.HealthCheck = HealthCheck(k, nil, nil, "")
		s.OutlierDetection = OutlierDetection(k, nil)
		return s
	}
	s.LoadBalancer = ir.RoundRobin
	if lb.Strategy == gatewayv1alpha1.StrategyLeastConnections {
		s.LoadBalancer = ir.LeastRequest
	}
	if p := lb.FailoverPolicy; p != nil && p.HealthThreshold != nil {
		s.HealthThreshold = uint32(min(max(*p.HealthThreshold, 1), 100))
	}
	s.HealthCheck = HealthCheck(k, lb.HealthCheck, lb.FailoverPolicy, checkHost(k, spec.Backends))
	s.OutlierDetection = OutlierDetection(k, lb.OutlierDetection)
	return s
}

// checkHost returns the host name that health checks send. It is that of the port's first
// backend, because a cluster has one.
func checkHost(k ir.TargetKey, backends []gatewayv1alpha1.Backend) string {
	for _, b := range backends {
		if b.VIPPort != nil && *b.VIPPort != k.Port {
			continue
		}
		if b.Kind == gatewayv1alpha1.BackendKindExternal {
			return ir.CanonicalHost(b.Host)
		}
		return b.Name + "." + k.Namespace + ".svc"
	}
	return ""
}

// HealthCheck returns the health check of a target, which opens a connection unless a path
// is set. It returns nil if the check is turned off, and for UDP, which Envoy cannot check.
//
// It limits the times here and not in the schema: API servers older than 1.30 would refuse each
// update of a stored object with another value, that of its status included (KEP-4008, ratcheting).
func HealthCheck(k ir.TargetKey, h *gatewayv1alpha1.HealthCheck, p *gatewayv1alpha1.FailoverPolicy, host string) *ir.HealthCheck {
	if k.Protocol == ir.ProtocolUDP || h != nil && !ptr.Deref(h.Enabled, true) {
		return nil
	}
	check := service.HealthCheckOf(h)
	out := &ir.HealthCheck{Path: check.Path, Interval: max(check.Interval, limits.ProbeInterval), Timeout: min(check.Timeout, limits.ProbeTimeout), Healthy: uint32(check.HealthyThreshold), Unhealthy: uint32(check.UnhealthyThreshold)}
	if out.Path != "" {
		out.Host = host
	}
	if p != nil {
		out.Healthy = positive(uint32(max(ptr.Deref(p.HealthyThreshold, 0), 0)), out.Healthy)
		out.Unhealthy = positive(uint32(max(ptr.Deref(p.UnhealthyThreshold, 0), 0)), out.Unhealthy)
	}
	return out
}

// OutlierDetection returns the outlier detection of a target with the schema's defaults. It
// returns nil for UDP, for which Envoy sees no failures.
//
// By default connections that fail count with error responses. Counted apart, each established
// connection resets the count of the failed ones, those of resets included (Envoy's
// outlier_detection_impl.cc, putResultWithLocalExternalSplit).
func OutlierDetection(k ir.TargetKey, o *gatewayv1alpha1.OutlierDetection) *ir.OutlierDetection {
	if k.Protocol == ir.ProtocolUDP {
		return nil
	}
	if o == nil {
		o = &gatewayv1alpha1.OutlierDetection{}
	}
	out := &ir.OutlierDetection{
		Consecutive5xx:            uint32(max(ptr.Deref(o.Consecutive5xx, outlierFailures), 0)),
		ConsecutiveGatewayFailure: uint32(max(ptr.Deref(o.ConsecutiveGatewayFailure, outlierFailures), 0)),
		Interval:                  outlierInterval,
		BaseEjectionTime:          outlierEjection,
		MaxEjectionPercent:        uint32(max(ptr.Deref(o.MaxEjectionPercent, outlierMaxPercent), 0)),
		SplitLocalOriginErrors:    ptr.Deref(o.SplitExternalLocalOriginErrors, false),
	}
	if o.Interval != nil {
		out.Interval = o.Interval.Duration
	}
	if o.BaseEjectionTime != nil {
		out.BaseEjectionTime = o.BaseEjectionTime.Duration
	}
	return out
}

// positive returns v if it is positive, and otherwise the alternative.
func positive[T ~int32 | ~int64 | ~uint32](v, otherwise T) T {
	if v > 0 {
		return v
	}
	return otherwise
}
