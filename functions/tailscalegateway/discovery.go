// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscalegateway

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tailscale-gateway/tailscale-gateway/internal/address"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// selectsAll says for the user what to set where nothing says what of a tailnet the
// Gateway's clients are to reach. Empty if something does, or nothing is looked for. Such
// an object was stored before the schema asked for it: what was found for it is reachable
// no more, for nobody has said that it is to be.
func (t *tailnet) selectsAll() string {
	if !t.discovers() || t.ServiceDiscovery.Narrowed() {
		return ""
	}
	return fmt.Sprintf("spec.tailnets[%s].serviceDiscovery: nothing is looked for, and routes to what was found are gone, for all of the tailnet would be reachable through the Gateway: set patterns or tags; patterns [\"*\"] stand for all", t.Name)
}

// picks reports whether a selector says what of the namespace has routes.
func (t *tailnet) picks() bool {
	return t.RouteGeneration.Egress != nil && t.RouteGeneration.Egress.Selector != nil
}

// exposes reports whether clients of the Gateway reach what is in a tailnet, or was picked
// by a selector. No route is generated in a step.
func (gp *gatewayPlan) exposes() bool {
	return !gp.step && gp.permitted() && slices.ContainsFunc(gp.tailnets, func(t *tailnet) bool {
		return t.discovers() && t.ServiceDiscovery.Narrowed() || t.picks()
	})
}

// discoveryPrivate tells by which public address the Gateway has clients outside of the
// tailnets. Who they are is for the Gateway's policies to say, so it is no mistake.
func (gp *gatewayPlan) discoveryPrivate() compose.Condition {
	front := gp.gateway.service()
	if at := publicAddress(front); at != "" {
		return compose.Condition{
			Status: compose.False, Reason: meta.ReasonPublicAddress,
			Message: fmt.Sprintf("Service %s/%s in front of Gateway %s has the public address %s: who reaches that reaches what is found in tailnets. If that is not meant, give the Gateway an address in a private network alone, or deny such requests by a SecurityPolicy or a TailscaleRoutePolicy",
				front.GetNamespace(), front.GetName(), gp.gateway.name(), at),
		}
	}
	return compose.Condition{Status: compose.True, Reason: meta.ReasonNoPublicAddress, Message: "No load balancer in front of the Gateway has a public address"}
}

// publicAddress of a load balancer in front of a Gateway, the first that there is. Empty
// if it has none. Whoever has a name for one may look it up, and find any address.
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
