// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleservices

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// errTemplateLabels is for the user.
var errTemplateLabels = errors.New("endpointTemplate.labels and selector.matchLabels do not satisfy selector.matchExpressions; add labels that do")

// A specError tells what of a spec cannot be done. It is for the user.
type specError struct {
	reason  xpv2.ConditionReason
	message string
}

// Error tells what cannot be done.
func (e *specError) Error() string { return e.message }

func invalidBackends(format string, args ...any) *specError {
	return &specError{reason: meta.ReasonInvalidBackends, message: fmt.Sprintf(format, args...)}
}

func invalidTLS(format string, args ...any) *specError {
	return &specError{reason: meta.ReasonInvalidTLS, message: fmt.Sprintf(format, args...)}
}

// needsGateway is what a proxy cannot do: it hands each port to one backend.
func needsGateway(format string, args ...any) *specError {
	return &specError{
		reason:  meta.ReasonUnsupported,
		message: fmt.Sprintf(format, args...) + ", or let a Gateway balance them and name its TailscaleGateway as the one backend",
	}
}

// portAll is the port of an attachment that stands for all.
const portAll int32 = 0

// An assignment gives a port of a service to a backend.
type assignment struct {
	port    int32
	backend gatewayv1alpha1.Backend

	// at is where proxies reach the backend.
	at tailnetv1alpha1.AttachmentBackend

	// tls is how the proxy ends TLS. Nil if it does not.
	tls *tailnetv1alpha1.AttachmentTLS
}

// http tells whether the backend is handed requests.
func (a assignment) http() bool {
	return a.backend.Protocol == gatewayv1alpha1.BackendProtocolHTTP
}

// assignPorts gives each port of the service to one backend, by port. What is
// wrong is told by field, for the user.
func assignPorts(spec gatewayv1alpha1.TailscaleServicesSpec) ([]assignment, *specError) {
	if err := checkBalancing(spec); err != nil {
		return nil, err
	}
	// The schema of an input does not ask for it (see generate in the Makefile).
	for i, b := range spec.Backends {
		if b.Port == 0 && b.Kind != gatewayv1alpha1.BackendKindGateway {
			return nil, invalidBackends("spec.backends[%d].port is required unless kind is %s", i, gatewayv1alpha1.BackendKindGateway)
		}
	}
	if slices.Contains(spec.VIPService.Ports, gatewayv1alpha1.ServicePortAll) {
		return assignAll(spec)
	}
	ports, err := servicePorts(spec.VIPService.Ports)
	if err != nil {
		return nil, err
	}
	named := map[int32][]int{}
	var rest []int
	for i, b := range spec.Backends {
		if b.VIPPort == nil {
			rest = append(rest, i)
			continue
		}
		if !slices.Contains(ports, *b.VIPPort) {
			return nil, invalidBackends("spec.backends[%d].vipPort %d is not in spec.vipService.ports; add tcp:%d there", i, *b.VIPPort, *b.VIPPort)
		}
		named[*b.VIPPort] = append(named[*b.VIPPort], i)
	}

	out := make([]assignment, 0, len(ports))
	for _, p := range ports {
		takers := named[p]
		if len(takers) == 0 {
			takers = rest
		}
		switch {
		case len(takers) == 0:
			return nil, invalidBackends("no backend answers port tcp:%d; add one to spec.backends with vipPort %d", p, p)
		case len(takers) > 1:
			return nil, needsGateway("%s all answer port tcp:%d; a port takes one backend, so give each a vipPort of its own", fields(takers), p)
		}
		out = append(out, assignment{port: p, backend: spec.Backends[takers[0]]})
	}
	return out, assignTLS(spec.TLS, out)
}

// checkBalancing refuses what only a Gateway can do.
func checkBalancing(spec gatewayv1alpha1.TailscaleServicesSpec) *specError {
	if lb := spec.LoadBalancing; lb != nil && lb.Strategy != "" && lb.Strategy != gatewayv1alpha1.StrategyRoundRobin && !onlyGateways(spec) {
		return needsGateway("proxies do not know spec.loadBalancing.strategy %s; set %s", lb.Strategy, gatewayv1alpha1.StrategyRoundRobin)
	}
	for i, b := range spec.Backends {
		if b.Kind == gatewayv1alpha1.BackendKindGateway {
			continue
		}
		if b.Weight != nil && *b.Weight != 1 {
			return needsGateway("proxies do not know spec.backends[%d].weight %d; remove it", i, *b.Weight)
		}
		if b.Priority != nil && *b.Priority != 0 {
			return needsGateway("proxies do not know spec.backends[%d].priority %d; remove it", i, *b.Priority)
		}
	}
	return nil
}

// assignAll gives all ports to the one backend.
func assignAll(spec gatewayv1alpha1.TailscaleServicesSpec) ([]assignment, *specError) {
	if len(spec.VIPService.Ports) != 1 || len(spec.Backends) != 1 || spec.Backends[0].VIPPort != nil {
		return nil, invalidBackends("spec.vipService.ports %s takes one backend, without vipPort, and no other port", gatewayv1alpha1.ServicePortAll)
	}
	b := spec.Backends[0]
	if spec.TLS != nil || b.ProxyProtocol != "" || b.Protocol == gatewayv1alpha1.BackendProtocolHTTP {
		return nil, invalidBackends("spec.vipService.ports %s hands on packets as they come; remove tls, proxyProtocol and protocol HTTP, or name ports", gatewayv1alpha1.ServicePortAll)
	}
	return []assignment{{port: portAll, backend: b}}, nil
}

// assignTLS says of the ports that speak TLS how it is ended.
func assignTLS(tls *gatewayv1alpha1.ServiceTLS, ports []assignment) *specError {
	if tls == nil {
		return nil
	}
	wanted := tls.Ports
	if len(wanted) == 0 && slices.ContainsFunc(ports, func(a assignment) bool { return a.port == portHTTPS }) {
		wanted = []int32{portHTTPS}
	}
	for i, p := range tls.Ports {
		if !slices.ContainsFunc(ports, func(a assignment) bool { return a.port == p }) {
			return invalidTLS("spec.tls.ports[%d] %d is not in spec.vipService.ports; add tcp:%d there", i, p, p)
		}
	}
	for i := range ports {
		a := &ports[i]
		if len(wanted) > 0 && !slices.Contains(wanted, a.port) {
			continue
		}
		if tls.Mode == gatewayv1alpha1.TLSModePassthrough {
			if a.http() {
				return invalidTLS("the backend of port tcp:%d has protocol HTTP, but spec.tls.mode Passthrough leaves its requests encrypted; set mode Terminate, or protocol TCP", a.port)
			}
			continue
		}
		a.tls = &tailnetv1alpha1.AttachmentTLS{}
		if tls.CertificateRef != nil {
			a.tls.SecretName = tls.CertificateRef.Name
		}
	}
	return nil
}

// portHTTPS speaks TLS where a service has it and does not say which ports do.
const portHTTPS int32 = 443

func servicePorts(in []gatewayv1alpha1.ServicePort) ([]int32, *specError) {
	out := make([]int32, 0, len(in))
	for i, p := range in {
		n, err := strconv.ParseUint(strings.TrimPrefix(string(p), "tcp:"), 10, 16)
		if err != nil || n == 0 {
			return nil, invalidBackends("spec.vipService.ports[%d] %q is not tcp:PORT with PORT from 1 to 65535", i, p)
		}
		out = append(out, int32(n))
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func fields(backends []int) string {
	names := make([]string, len(backends))
	for i, b := range backends {
		names[i] = fmt.Sprintf("spec.backends[%d]", b)
	}
	return compose.List(names...)
}

// checkNetworking refuses all ports where proxies cannot hand on packets. Of
// endpoints that do not say, their agents tell.
func (s *service) checkNetworking() *specError {
	if !s.allPorts() {
		return nil
	}
	for _, p := range s.sel.sets {
		for _, m := range p.Spec.Sets {
			if m.Direction == tailnetv1alpha1.DirectionIngress && m.Networking == string(tailnetv1alpha1.NetworkingUserspace) {
				return &specError{reason: meta.ReasonUnsupported, message: fmt.Sprintf(
					"spec.vipService.ports %s needs proxies with Kernel networking; set spec.proxy.networking of TailscaleEndpoints %s, or name ports",
					gatewayv1alpha1.ServicePortAll, p.Spec.Endpoints)}
			}
		}
	}
	return nil
}
