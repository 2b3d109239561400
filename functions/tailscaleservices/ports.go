// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleservices

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	rules "github.com/tailscale-gateway/tailscale-gateway/internal/service"
)

// errTemplateLabels is a message for the user.
var errTemplateLabels = errors.New("endpointTemplate.labels and selector.matchLabels do not satisfy selector.matchExpressions; add labels that do")

// A specError describes a part of a spec that is not supported. It is for the user.
type specError struct {
	reason  xpv2.ConditionReason
	message string
}

// Error returns the message.
func (e *specError) Error() string { return e.message }

func invalidBackends(format string, args ...any) *specError {
	return &specError{reason: meta.ReasonInvalidBackends, message: fmt.Sprintf(format, args...)}
}

func invalidTLS(format string, args ...any) *specError {
	return &specError{reason: meta.ReasonInvalidTLS, message: fmt.Sprintf(format, args...)}
}

// unsupported returns the error for backends that proxies cannot balance. Gateways can.
func unsupported(format string, args ...any) *specError {
	return &specError{
		reason:  meta.ReasonUnsupported,
		message: fmt.Sprintf(format, args...) + ", let a Gateway balance them and name its TailscaleGateway as the one backend, or set spec.vipService.enabled to false if routes alone use them",
	}
}

// portAll stands for all ports in an attachment.
const portAll int32 = 0

// An assignment maps a port of a service to a backend.
type assignment struct {
	port    int32
	backend gatewayv1alpha1.Backend

	// shares are the backends among which proxies balance the port, in the order of the spec. There
	// are none if the port has one backend.
	shares []share

	// alone means that other backends also answer the port, but proxies ignore them.
	alone bool

	// address is the one at which proxies reach the backend.
	address tailnetv1alpha1.AttachmentBackend

	// tls describes how the proxy terminates TLS. It is nil if the proxy does not.
	tls *tailnetv1alpha1.AttachmentTLS
}

// A share is one of several backends of a port, and the address at which proxies reach it.
type share struct {
	backend gatewayv1alpha1.Backend
	address tailnetv1alpha1.AttachmentBackend
}

// http reports whether the backend receives HTTP requests, with TLS or without.
func (a assignment) http() bool { return a.backend.Protocol.Requests() }

// assign returns each port of the service with its backend and the backend's address.
func assign(s *service) ([]assignment, *specError) {
	if s.unfilled != nil {
		return nil, s.unfilled
	}
	ports, err := assignPorts(s.spec, s.routed())
	if err == nil {
		err = checkNetworking(s, ports)
	}
	if err == nil {
		err = s.locate(ports)
	}
	if err == nil {
		err = s.checkAuthorities(ports)
	}
	return ports, err
}

// assignPorts returns each port of the service with its backends, by port. Errors name the field,
// for the user. Backends that proxies cannot balance are errors unless the object is routed: then its
// routes balance them, and proxies forward a port to the backend that should receive most of it.
func assignPorts(spec gatewayv1alpha1.TailscaleServicesSpec, routed bool) ([]assignment, *specError) {
	if err := checkPorts(spec); err != nil {
		return nil, err
	}
	if allOf(spec) {
		if strategy(spec) != gatewayv1alpha1.StrategyRoundRobin && !routed {
			return nil, unsupported("spec.vipService.ports %s hands on packets, which proxies do not balance by spec.loadBalancing.strategy %s; set %s, name ports",
				gatewayv1alpha1.ServicePortAll, strategy(spec), gatewayv1alpha1.StrategyRoundRobin)
		}
		return assignAll(spec)
	}
	if err := checkNames(spec); err != nil && !routed {
		return nil, err
	}
	takers, err := takersOf(spec)
	if err != nil {
		return nil, err
	}
	out := make([]assignment, 0, len(takers))
	for _, t := range takers {
		a, err := assignTakers(spec, t)
		if err != nil && !routed {
			return nil, err
		}
		out = append(out, a)
	}
	return out, assignTLS(spec.TLS, out)
}

// checkPorts returns an error for ports and settings of TLS that the schema of an input does not reject (see generate
// in the Makefile).
func checkPorts(spec gatewayv1alpha1.TailscaleServicesSpec) *specError {
	for i, b := range spec.Backends {
		if b.Port == 0 && b.Kind != gatewayv1alpha1.BackendKindGateway {
			return invalidBackends("spec.backends[%d].port is required unless kind is %s", i, gatewayv1alpha1.BackendKindGateway)
		}
	}
	return checkSecure(spec)
}

// allOf reports whether a spec has all ports.
func allOf(spec gatewayv1alpha1.TailscaleServicesSpec) bool {
	return rules.AllPorts(spec)
}

// takers holds a port and the indexes of the backends that answer it.
type takers struct {
	port     int32
	backends []int
}

// takersOf returns the backends of each port of the service, by port: at least one.
func takersOf(spec gatewayv1alpha1.TailscaleServicesSpec) ([]takers, *specError) {
	ports, err := servicePorts(spec.VIPService.Ports)
	if err != nil {
		return nil, err
	}
	for i, b := range spec.Backends {
		if b.VIPPort != nil && !slices.Contains(ports, *b.VIPPort) {
			return nil, invalidBackends("spec.backends[%d].vipPort %d is not in spec.vipService.ports; add tcp:%d there", i, *b.VIPPort, *b.VIPPort)
		}
	}
	out := make([]takers, 0, len(ports))
	for _, p := range ports {
		t := takers{port: p, backends: rules.Answering(spec.Backends, p)}
		if len(t.backends) == 0 {
			return nil, invalidBackends("no backend answers port tcp:%d; add one to spec.backends with vipPort %d", p, p)
		}
		out = append(out, t)
	}
	return out, nil
}

// preferred returns the backend that should receive most of a port: the first that failover names,
// otherwise the one with the lowest priority, the highest weight, or the first.
func preferred(spec gatewayv1alpha1.TailscaleServicesSpec, backends []int) int {
	lb := spec.LoadBalancing
	priority := func(i int) int32 { return rules.Priority(lb, spec.Backends[i]) }
	weight := func(i int) gatewayv1alpha1.Weight { return rules.Weight(lb, spec.Backends[i]) }
	return slices.MinFunc(backends, func(a, b int) int {
		return cmp.Or(cmp.Compare(priority(a), priority(b)), cmp.Compare(weight(b), weight(a)), cmp.Compare(a, b))
	})
}

// assignAll gives all ports to the one backend.
func assignAll(spec gatewayv1alpha1.TailscaleServicesSpec) ([]assignment, *specError) {
	if len(spec.VIPService.Ports) != 1 || len(spec.Backends) != 1 || spec.Backends[0].VIPPort != nil {
		return nil, invalidBackends("spec.vipService.ports %s takes one backend, without vipPort, and no other port", gatewayv1alpha1.ServicePortAll)
	}
	b := spec.Backends[0]
	if spec.TLS != nil || b.ProxyProtocol != "" || b.Protocol.Requests() {
		return nil, invalidBackends("spec.vipService.ports %s hands on packets as they come; remove tls, proxyProtocol and protocol HTTP or HTTPS, or name ports", gatewayv1alpha1.ServicePortAll)
	}
	return []assignment{{port: portAll, backend: b}}, nil
}

// assignTLS sets how TLS is terminated at the ports that use TLS.
func assignTLS(tls *gatewayv1alpha1.ServiceTLS, ports []assignment) *specError {
	if tls == nil {
		return nil
	}
	for i, p := range tls.Ports {
		if !slices.ContainsFunc(ports, func(a assignment) bool { return a.port == p }) {
			return invalidTLS("spec.tls.ports[%d] %d is not in spec.vipService.ports; add tcp:%d there", i, p, p)
		}
	}
	https := slices.ContainsFunc(ports, func(a assignment) bool { return a.port == rules.PortHTTPS })
	for i := range ports {
		a := &ports[i]
		if !rules.SpeaksTLS(tls, https, a.port) {
			continue
		}
		if !rules.TerminatesTLS(tls, https, a.port) {
			if a.http() {
				return invalidTLS("the backend of port tcp:%d has protocol %s, but spec.tls.mode Passthrough leaves its requests encrypted; set mode Terminate, or protocol TCP", a.port, a.backend.Protocol)
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

// servicePorts parses the ports of a service, and returns them sorted.
func servicePorts(ports []gatewayv1alpha1.ServicePort) ([]int32, *specError) {
	out := make([]int32, 0, len(ports))
	for i, p := range ports {
		n, ok := tailnetv1alpha1.ServicePort(p).Number()
		if !ok {
			return nil, invalidBackends("spec.vipService.ports[%d] %q is not tcp:PORT with PORT from 1 to 65535", i, p)
		}
		out = append(out, n)
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

// checkNetworking returns an error if the kernel of a pod with the networking of the selected proxies
// cannot do what the ports need. If the endpoints do not report this, their agents do.
func checkNetworking(s *service, ports []assignment) *specError {
	if allPorts(ports) {
		if field := withNetworking(s, tailnetv1alpha1.NetworkingUserspace); field != "" {
			return &specError{reason: meta.ReasonUnsupported, message: fmt.Sprintf(
				"spec.vipService.ports %s needs proxies with Kernel networking; set %s, or name ports",
				gatewayv1alpha1.ServicePortAll, field)}
		}
		return nil
	}
	field := withNetworking(s, tailnetv1alpha1.NetworkingKernel)
	if field == "" {
		return nil
	}
	if strategy(s.spec) != gatewayv1alpha1.StrategyRoundRobin && !s.routed() {
		return unsupported("proxies with Kernel networking do not know spec.loadBalancing.strategy %s; set %s, set %s to Userspace", strategy(s.spec), gatewayv1alpha1.StrategyRoundRobin, field)
	}
	for i := range ports {
		a := &ports[i]
		if len(a.shares) == 0 {
			continue
		}
		if !s.routed() {
			return unsupported("proxies with Kernel networking do not balance the backends of port tcp:%d; give each a different vipPort, set %s to Userspace", a.port, field)
		}
		a.shares, a.alone = nil, true
	}
	return nil
}

// withNetworking returns the field that gives selected ingress proxies a kind of networking, for a
// message. It is empty if they have another kind.
func withNetworking(s *service, n tailnetv1alpha1.Networking) string {
	for _, p := range s.sel.sets {
		for _, m := range p.Spec.Sets {
			if m.Direction == tailnetv1alpha1.DirectionIngress && m.Networking == string(n) {
				return "spec.proxy.networking of TailscaleEndpoints " + p.Spec.Endpoints
			}
		}
	}
	// The endpoints of the template may not exist yet.
	if t := s.spec.EndpointTemplate; s.sel.provision && t != nil && string(t.Proxy.Networking) == string(n) {
		return "spec.endpointTemplate.proxy.networking"
	}
	return ""
}
