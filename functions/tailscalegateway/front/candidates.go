// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package front

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Any user may add a Gateway's labels to a Service. A Service outside the namespaces in which Envoy
// Gateway creates them is refused. Of the others, a Service whose address is in the Gateway's
// status takes precedence.

// candidates returns the Services that may be in front of a Gateway, and the other Services as
// refused. Both omit Services that are being deleted.
func candidates(g *gwapiv1.Gateway, services []corev1.Service, namespaces []string) (out, refused []corev1.Service) {
	var named, unknown []corev1.Service
	for _, s := range services {
		switch {
		case s.GetDeletionTimestamp() != nil:
		case s.GetNamespace() != g.GetNamespace() && !slices.Contains(namespaces, s.GetNamespace()):
			refused = append(refused, s)
		case addressed(g, s):
			named = append(named, s)
		case len(g.Status.Addresses) == 0 || elsewhere(s):
			unknown = append(unknown, s)
		default:
			refused = append(refused, s)
		}
	}
	if len(named) > 0 {
		return named, append(refused, unknown...)
	}
	return unknown, refused
}

// addressed reports whether the status of a Gateway has an address of a Service: that of its
// load balancer, one in the cluster, or one that the Gateway's spec requests (envoyproxy/gateway
// v1.9 internal/gatewayapi/status/gateway.go, UpdateGatewayStatusProgrammedCondition).
func addressed(g *gwapiv1.Gateway, s corev1.Service) bool {
	addresses := slices.Concat(s.Spec.ClusterIPs, s.Spec.ExternalIPs, []string{s.Spec.ClusterIP})
	for _, i := range s.Status.LoadBalancer.Ingress {
		addresses = append(addresses, i.IP, i.Hostname)
	}
	return slices.ContainsFunc(g.Status.Addresses, func(a gwapiv1.GatewayStatusAddress) bool { return a.Value != "" && slices.Contains(addresses, a.Value) })
}

// elsewhere reports whether the Gateway's addresses may differ from those of its Service: with a
// node port they are those of nodes, a load balancer may have none yet, and a headless Service has
// none.
func elsewhere(s corev1.Service) bool {
	switch s.Spec.Type {
	case corev1.ServiceTypeNodePort:
		return true
	case corev1.ServiceTypeLoadBalancer:
		return len(s.Status.LoadBalancer.Ingress) == 0
	case corev1.ServiceTypeClusterIP, corev1.ServiceTypeExternalName:
	}
	return s.Spec.ClusterIP == corev1.ClusterIPNone
}
