// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleservices

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// Probes of a service that says nothing of health: a TCP connection. A backend
// that is gone is withdrawn within two intervals and a timeout, 12 s at most.
const (
	probeInterval           = 5 * time.Second
	probeTimeout            = 2 * time.Second
	probeHealthyThreshold   = 1
	probeUnhealthyThreshold = 2
)

// Figures that a health check has when it does not say otherwise. They are the
// schema's defaults, for who calls the function without it.
const (
	checkInterval           = 10 * time.Second
	checkTimeout            = 3 * time.Second
	checkHealthyThreshold   = 2
	checkUnhealthyThreshold = 3
	checkPath               = "/health"
)

// healthCheck of the agents.
func healthCheck(lb *gatewayv1alpha1.LoadBalancing) tailnetv1alpha1.AttachmentHealthCheck {
	if lb == nil || lb.HealthCheck == nil {
		return tailnetv1alpha1.AttachmentHealthCheck{
			Interval:           metav1.Duration{Duration: probeInterval},
			Timeout:            metav1.Duration{Duration: probeTimeout},
			HealthyThreshold:   probeHealthyThreshold,
			UnhealthyThreshold: probeUnhealthyThreshold,
		}
	}
	h := lb.HealthCheck
	out := tailnetv1alpha1.AttachmentHealthCheck{
		Interval:           metav1.Duration{Duration: positive(h.Interval.Duration, checkInterval)},
		Timeout:            metav1.Duration{Duration: positive(h.Timeout.Duration, checkTimeout)},
		HealthyThreshold:   positive(h.HealthyThreshold, checkHealthyThreshold),
		UnhealthyThreshold: positive(h.UnhealthyThreshold, checkUnhealthyThreshold),
	}
	if h.Enabled == nil || !*h.Enabled {
		out.ResolveOnly = h.Enabled != nil
		return out
	}
	out.Path = h.Path
	if out.Path == "" {
		out.Path = checkPath
	}
	return out
}

func positive[T ~int32 | ~int64](v, otherwise T) T {
	if v > 0 {
		return v
	}
	return otherwise
}
