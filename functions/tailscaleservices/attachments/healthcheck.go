// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package attachments

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	rules "github.com/tailscale-gateway/tailscale-gateway/internal/service"
)

// healthCheck returns the health check of the agents.
func healthCheck(lb *gatewayv1alpha1.LoadBalancing) tailnetv1alpha1.AttachmentHealthCheck {
	var h *gatewayv1alpha1.HealthCheck
	if lb != nil {
		h = lb.HealthCheck
	}
	check := rules.HealthCheckOf(h)
	return tailnetv1alpha1.AttachmentHealthCheck{
		Path:               check.Path,
		Interval:           metav1.Duration{Duration: check.Interval},
		Timeout:            metav1.Duration{Duration: check.Timeout},
		HealthyThreshold:   check.HealthyThreshold,
		UnhealthyThreshold: check.UnhealthyThreshold,
		ResolveOnly:        h != nil && h.Enabled != nil && !*h.Enabled,
	}
}
