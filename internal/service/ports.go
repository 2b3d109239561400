// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// PortHTTPS is the port that speaks TLS if a service has it and does not name the ports that do.
const PortHTTPS int32 = 443

// PortAll stands for all ports in an attachment.
const PortAll int32 = 0

// Port returns a TCP port in the form of spec.vipService.ports.
func Port(port int32) gatewayv1alpha1.ServicePort {
	return gatewayv1alpha1.ServicePort(fmt.Sprintf("tcp:%d", port))
}

// AllPorts reports whether a service takes all ports, and not only those that it lists.
func AllPorts(spec gatewayv1alpha1.TailscaleServicesSpec) bool {
	return slices.Contains(spec.VIPService.Ports, gatewayv1alpha1.ServicePortAll)
}

// Numbers parses the ports of a service, and returns them sorted. Its error is for the user.
func Numbers(ports []gatewayv1alpha1.ServicePort) ([]int32, error) {
	out := make([]int32, 0, len(ports))
	for i, p := range ports {
		n, ok := tailnetv1alpha1.ServicePort(p).Number()
		if !ok {
			return nil, errors.Errorf("spec.vipService.ports[%d] %q is not tcp:PORT with PORT from 1 to 65535", i, p)
		}
		out = append(out, n)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// Answering returns the indices of the backends that answer a port: those that name it in
// vipPort, or those without vipPort if no backend names it.
func Answering(backends []gatewayv1alpha1.Backend, port int32) []int {
	var named, others []int
	for i, b := range backends {
		switch {
		case b.VIPPort == nil:
			others = append(others, i)
		case *b.VIPPort == port:
			named = append(named, i)
		}
	}
	if len(named) == 0 {
		return others
	}
	return named
}

// Priority returns the priority of a backend: that of its spec, or with the strategy failover its
// place in the order. Backends that the order does not name come last.
func Priority(lb *gatewayv1alpha1.LoadBalancing, b gatewayv1alpha1.Backend) int32 {
	if lb == nil || lb.Strategy != gatewayv1alpha1.StrategyFailover || lb.Failover == nil {
		return ptr.Deref(b.Priority, 0)
	}
	order := append([]gatewayv1alpha1.BackendName{lb.Failover.Primary}, lb.Failover.Secondary...)
	if at := slices.Index(order, gatewayv1alpha1.BackendName(b.Name)); at >= 0 {
		return int32(at)
	}
	return int32(len(order))
}

// Weight returns the weight of a backend: that of its spec, or with the strategy weighted the one
// in its weights.
func Weight(lb *gatewayv1alpha1.LoadBalancing, b gatewayv1alpha1.Backend) gatewayv1alpha1.Weight {
	if lb != nil && lb.Strategy == gatewayv1alpha1.StrategyWeighted {
		if w, ok := lb.Weights[b.Name]; ok {
			return w
		}
	}
	return ptr.Deref(b.Weight, 1)
}

// SpeaksTLS reports whether clients speak TLS at a port of a service: at the ports that spec.tls
// names, otherwise at port 443, and at all ports of a service without port 443. Nil is no TLS.
func SpeaksTLS(tls *gatewayv1alpha1.ServiceTLS, hasHTTPS bool, port int32) bool {
	switch {
	case tls == nil:
		return false
	case len(tls.Ports) > 0:
		return slices.Contains(tls.Ports, port)
	}
	return port == PortHTTPS || !hasHTTPS
}

// TerminatesTLS reports whether proxies terminate the TLS of a port.
func TerminatesTLS(tls *gatewayv1alpha1.ServiceTLS, hasHTTPS bool, port int32) bool {
	return SpeaksTLS(tls, hasHTTPS, port) && tls.Mode != gatewayv1alpha1.TLSModePassthrough
}
