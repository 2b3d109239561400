// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscalegateway

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"github.com/tailscale-gateway/tailscale-gateway/internal/address"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// discoveryPrivate returns the condition DiscoveryPrivate, with the public address by which clients
// outside of the tailnets reach the Gateway. The Gateway's policies may restrict these clients, so
// a public address alone does not make the condition False.
func discoveryPrivate(gp *gatewayPlan) compose.Condition {
	front := gp.gateway.Service()
	if at := publicAddress(front); at != "" {
		return compose.Condition{
			Status: compose.False, Reason: meta.ReasonPublicAddress,
			Message: fmt.Sprintf("Service %s/%s in front of Gateway %s has the public address %s: clients that reach the address also reach the discovered services of tailnets. If you do not want this, give the Gateway an address in a private network alone, or deny such requests by a SecurityPolicy or a TailscaleRoutePolicy",
				front.GetNamespace(), front.GetName(), gp.gateway.Name(), at),
		}
	}
	return compose.Condition{Status: compose.True, Reason: meta.ReasonNoPublicAddress, Message: "No load balancer in front of the Gateway has a public address"}
}

// publicAddress returns the first public address of a load balancer in front of a Gateway. It is
// empty if there is none. A host name counts as public, because it may resolve to any address.
func publicAddress(s *corev1.Service) string {
	if s == nil || s.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return ""
	}
	for _, i := range s.Status.LoadBalancer.Ingress {
		if a, err := netip.ParseAddr(i.IP); err == nil && address.Public(a) {
			return i.IP
		}
		if i.Hostname != "" {
			return i.Hostname
		}
	}
	return ""
}
