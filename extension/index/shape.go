// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"time"

	"k8s.io/utils/ptr"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
)

// Figures that the schema has as defaults, for objects that did not pass it.
const (
	defaultHealthThreshold = 70

	checkInterval  = 10 * time.Second
	checkTimeout   = 3 * time.Second
	checkHealthy   = 2
	checkUnhealthy = 3
	checkPath      = "/health"

	outlierFailures   = 3
	outlierInterval   = 30 * time.Second
	outlierEjection   = 30 * time.Second
	outlierMaxPercent = 50
)

// Probes of a service that says nothing of health: those of agents
// (functions/tailscaleservices/healthcheck.go).
const (
	probeInterval  = 5 * time.Second
	probeTimeout   = 2 * time.Second
	probeHealthy   = 1
	probeUnhealthy = 2
)

// servicesShape is what a TailscaleServices asks for.
func servicesShape(k TargetKey, spec *gatewayv1alpha1.TailscaleServicesSpec) Shape {
	s := Shape{HealthThreshold: defaultHealthThreshold, HTTP2: k.Protocol == ProtocolGRPC}
	lb := spec.LoadBalancing
	if lb == nil {
		s.HealthCheck = healthCheck(k, nil, nil, "")
		s.OutlierDetection = outlierDetection(k, nil)
		return s
	}
	s.LoadBalancer = RoundRobin
	if lb.Strategy == gatewayv1alpha1.StrategyLeastConnections {
		s.LoadBalancer = LeastRequest
	}
	if p := lb.FailoverPolicy; p != nil && p.HealthThreshold != nil {
		s.HealthThreshold = uint32(min(max(*p.HealthThreshold, 1), 100))
	}
	s.HealthCheck = healthCheck(k, lb.HealthCheck, lb.FailoverPolicy, checkHost(k, spec.Backends))
	s.OutlierDetection = outlierDetection(k, lb.OutlierDetection)
	return s
}

// checkHost is the name that agents ask backends by. Of several it is the first's: a
// cluster has one.
func checkHost(k TargetKey, backends []gatewayv1alpha1.Backend) string {
	for _, b := range backends {
		if b.VIPPort != nil && *b.VIPPort != k.Port {
			continue
		}
		if b.Kind == gatewayv1alpha1.BackendKindExternal {
			return canonicalHost(b.Host)
		}
		return b.Name + "." + k.Namespace + ".svc"
	}
	return ""
}

// healthCheck of Envoy: a connection, unless it says otherwise. Nil means none, which
// is so for who turns it off, and for UDP, which Envoy has no check for.
func healthCheck(k TargetKey, h *gatewayv1alpha1.HealthCheck, p *gatewayv1alpha1.FailoverPolicy, host string) *HealthCheck {
	if k.Protocol == ProtocolUDP || h != nil && !ptr.Deref(h.Enabled, true) {
		return nil
	}
	out := &HealthCheck{Interval: probeInterval, Timeout: probeTimeout, Healthy: probeHealthy, Unhealthy: probeUnhealthy}
	if h != nil {
		out.Interval = positive(h.Interval.Duration, checkInterval)
		out.Timeout = positive(h.Timeout.Duration, checkTimeout)
		out.Healthy = uint32(positive(h.HealthyThreshold, checkHealthy))
		out.Unhealthy = uint32(positive(h.UnhealthyThreshold, checkUnhealthy))
		if h.Enabled != nil {
			out.Path, out.Host = cmp.Or(h.Path, checkPath), host
		}
	}
	if p != nil {
		out.Healthy = positive(uint32(max(ptr.Deref(p.HealthyThreshold, 0), 0)), out.Healthy)
		out.Unhealthy = positive(uint32(max(ptr.Deref(p.UnhealthyThreshold, 0), 0)), out.Unhealthy)
	}
	return out
}

// outlierDetection with the schema's defaults. UDP has no failures that Envoy sees.
func outlierDetection(k TargetKey, o *gatewayv1alpha1.OutlierDetection) *OutlierDetection {
	if k.Protocol == ProtocolUDP {
		return nil
	}
	if o == nil {
		o = &gatewayv1alpha1.OutlierDetection{}
	}
	out := &OutlierDetection{
		Consecutive5xx:            uint32(max(ptr.Deref(o.Consecutive5xx, outlierFailures), 0)),
		ConsecutiveGatewayFailure: uint32(max(ptr.Deref(o.ConsecutiveGatewayFailure, outlierFailures), 0)),
		Interval:                  outlierInterval,
		BaseEjectionTime:          outlierEjection,
		MaxEjectionPercent:        uint32(max(ptr.Deref(o.MaxEjectionPercent, outlierMaxPercent), 0)),
		SplitLocalOriginErrors:    ptr.Deref(o.SplitExternalLocalOriginErrors, true),
	}
	if o.Interval != nil {
		out.Interval = o.Interval.Duration
	}
	if o.BaseEjectionTime != nil {
		out.BaseEjectionTime = o.BaseEjectionTime.Duration
	}
	return out
}

func positive[T ~int32 | ~int64 | ~uint32](v, otherwise T) T {
	if v > 0 {
		return v
	}
	return otherwise
}
