// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleendpoints

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
)

// ingressPorts returns the ports at which the ingress proxies may host services. spec.ports is a
// permission that the owner of the proxies gives: a list that becomes shorter withdraws services. An
// upgrade must not withdraw any: to earlier versions the list was for egress alone. So a list from
// before the ProxySet had the ports keeps the services that are hosted, until the list changes.
func ingressPorts(f facts) *tailnetv1alpha1.ProxySetPorts {
	out := compose.IngressPorts(f.spec.Ports)
	if out.All || f.proxySet == nil {
		return out
	}
	previous := f.proxySet.Spec.IngressPorts
	out.KeepHosted = previous == nil || previous.KeepHosted && slices.Equal(previous.Allowed, out.Allowed)
	return out
}

// podPorts returns the ports of a healthy machine's pod: those of its metrics, then those that its
// agent reports. They have no health, which changes more often and is elsewhere in the status.
func podPorts(m *tailnetv1alpha1.MachineSummary) []gatewayv1alpha1.EndpointPort {
	var out []gatewayv1alpha1.EndpointPort
	for _, p := range proxy.Ports() {
		out = append(out, gatewayv1alpha1.EndpointPort{Name: p.Name, Port: p.ContainerPort, Protocol: p.Protocol})
	}
	for _, p := range m.Ports {
		if p == string(tailnetv1alpha1.ServicePortAll) {
			out = append(out, endpointPort(corev1.ProtocolTCP, 0), endpointPort(corev1.ProtocolUDP, 0))
			continue
		}
		protocol, number, _ := strings.Cut(p, ":")
		// A port in a form of another version is left out, and so is 0, which would be all ports.
		if n, err := strconv.ParseUint(number, 10, 16); err == nil && n > 0 {
			out = append(out, endpointPort(corev1.Protocol(strings.ToUpper(protocol)), int32(n)))
		}
	}
	return out
}

// endpointPort returns a port that has no name in the spec.
func endpointPort(protocol corev1.Protocol, port int32) gatewayv1alpha1.EndpointPort {
	return gatewayv1alpha1.EndpointPort{Name: fmt.Sprintf("%s-%d", strings.ToLower(string(protocol)), port), Port: port, Protocol: protocol}
}
