// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleservices

import (
	"fmt"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/conditions"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/ports"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// routed reports whether Gateways reach something through the object, as their extension
// reports.
func (f facts) routed() bool { return f.health != nil && len(f.health.Ports) > 0 }

// planForRoutes returns the plan of an object without a Tailscale Service, which has no children.
func planForRoutes(f facts) compose.Plan {
	c := compose.Condition{Type: meta.TypeAccepted, Status: compose.True, Reason: meta.ReasonAccepted, Message: "Every port has a backend; there is no Tailscale Service, for spec.vipService.enabled is false"}
	err := f.unfilled
	if err == nil {
		err = ports.CheckForRoutes(f.spec)
	}
	if err != nil {
		c.Status, c.Reason, c.Message = compose.False, err.Reason, fmt.Sprintf("Routes cannot lead to every port: %v", err)
	}
	return compose.Plan{
		Conditions: append([]compose.Condition{c}, conditions.Unpublished(f.conditions)...),
		Status:     gatewayv1alpha1.TailscaleServicesStatus{LoadBalancingStatus: f.loadBalancing(), Routes: f.routes()},
		NotReady:   err != nil,
	}
}
