// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleservices

import (
	"fmt"

	"k8s.io/utils/ptr"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// publishes reports whether there is to be a Tailscale Service. Else the object is for routes
// of Gateways alone.
func (s *service) publishes() bool { return ptr.Deref(s.xr.Spec.VIPService.Enabled, true) }

// routed reports whether Gateways reach something through the object, as their extension
// reports.
func (s *service) routed() bool { return s.health != nil && len(s.health.Ports) > 0 }

// runForRoutes of an object without a Tailscale Service: it composes nothing.
func (s *service) runForRoutes(r *compose.Run, filled bool) error {
	if !filled || !r.HealthRead() {
		r.SetWaiting("Waiting for Crossplane to read the Service and the HealthReport", meta.TypeAccepted)
		return r.CarryOver()
	}
	if s.portsErr = s.unfilled; s.portsErr == nil {
		s.portsErr = checkForRoutes(s.xr.Spec)
	}
	c := compose.Condition{Type: meta.TypeAccepted, Status: compose.True, Reason: meta.ReasonAccepted, Message: "Every port has a backend; there is no Tailscale Service, for spec.vipService.enabled is false"}
	if s.portsErr != nil {
		c.Status, c.Reason, c.Message = compose.False, s.portsErr.reason, fmt.Sprintf("Routes cannot lead to every port: %v", s.portsErr)
		r.NotReady()
	}
	r.SetCondition(c)
	for _, t := range append(conditionTypes, meta.TypeConflict, meta.TypeDiscoverySuccessful) {
		if t != meta.TypeAccepted && r.HasCondition(t) {
			r.SetCondition(compose.Condition{Type: t, Reason: meta.ReasonNotAskedFor, Message: "spec.vipService.enabled is false"})
		}
	}
	return r.Status(gatewayv1alpha1.TailscaleServicesStatus{LoadBalancingStatus: s.loadBalancing()})
}

// checkForRoutes refuses what Gateways cannot do with backends (extension/index).
func checkForRoutes(spec gatewayv1alpha1.TailscaleServicesSpec) *specError {
	if err := checkPorts(spec); err != nil {
		return err
	}
	for i, b := range spec.Backends {
		switch {
		case b.Kind == gatewayv1alpha1.BackendKindGateway:
			return invalidBackends("spec.backends[%d] is a TailscaleGateway, and a request could go in a circle; name what its routes name", i)
		case b.ProxyProtocol != "":
			return invalidBackends("spec.backends[%d].proxyProtocol is for proxies, and a Gateway does not send it; remove it", i)
		}
	}
	if allOf(spec) {
		return nil
	}
	_, err := takersOf(spec)
	return err
}
