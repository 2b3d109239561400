// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package ports assigns the ports of a Tailscale Service to its backends, and finds where proxies reach
// those.
package ports

import (
	"cmp"
	"fmt"
	"slices"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/grants"
	"github.com/tailscale-gateway/tailscale-gateway/internal/backendtls"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	rules "github.com/tailscale-gateway/tailscale-gateway/internal/service"
)

// A SpecError describes a part of a spec that is not supported. It is for the user.
type SpecError struct {
	Reason  xpv2.ConditionReason
	Message string
}

// Error returns the message.
func (e *SpecError) Error() string { return e.Message }

func invalidBackends(format string, args ...any) *SpecError {
	return &SpecError{Reason: meta.ReasonInvalidBackends, Message: fmt.Sprintf(format, args...)}
}

func invalidTLS(format string, args ...any) *SpecError {
	return &SpecError{Reason: meta.ReasonInvalidTLS, Message: fmt.Sprintf(format, args...)}
}

// unsupported returns the error for backends that proxies cannot balance. Gateways can.
func unsupported(format string, args ...any) *SpecError {
	return &SpecError{
		Reason:  meta.ReasonUnsupported,
		Message: fmt.Sprintf(format, args...) + ", let a Gateway balance them and name its TailscaleGateway as the one backend, or set spec.vipService.enabled to false if routes alone use them",
	}
}

// An Assignment maps a port of a service to a backend.
type Assignment struct {
	Port    int32
	Backend gatewayv1alpha1.Backend

	// Shares are the backends among which proxies balance the port, in the order of the spec. There
	// are none if the port has one backend.
	Shares []Share

	// Alone means that other backends also answer the port, but proxies ignore them.
	Alone bool

	// Address is the one at which proxies reach the backend.
	Address tailnetv1alpha1.AttachmentBackend

	// TLS describes how the proxy terminates TLS. It is nil if the proxy does not.
	TLS *tailnetv1alpha1.AttachmentTLS
}

// A Share is one of several backends of a port, and the address at which proxies reach it.
type Share struct {
	Backend gatewayv1alpha1.Backend
	Address tailnetv1alpha1.AttachmentBackend
}

// http reports whether the backend receives HTTP requests, with TLS or without.
func (a Assignment) http() bool { return a.Backend.Protocol.Requests() }

// Facts are what the ports of a service follow from.
type Facts struct {
	Owner compose.Owner

	// Spec is the spec, completed from the Service of the object's name. Unfilled is why that Service
	// cannot complete it.
	Spec     gatewayv1alpha1.TailscaleServicesSpec
	Unfilled *SpecError

	// Routed reports whether Gateways reach something through the object.
	Routed bool

	// Selected are the selected endpoints, and Provision means that those of the template are wanted.
	Selected  []tailnetv1alpha1.ProxySet
	Provision bool

	// Gateways are the TailscaleGateways that are backends, by name. Missing ones are omitted.
	Gateways map[string]*gatewayv1alpha1.TailscaleGateway

	// Authorities are those that backends trust, by ConfigMap.
	Authorities map[string]backendtls.Authorities

	Permissions grants.Permissions
}

// Assign returns each port of the service with its backend and the backend's address.
func Assign(f Facts) ([]Assignment, *SpecError) {
	if f.Unfilled != nil {
		return nil, f.Unfilled
	}
	assigned, err := assignPorts(f.Spec, f.Routed)
	if err == nil {
		err = checkNetworking(f, assigned)
	}
	if err == nil {
		err = locate(f, assigned)
	}
	if err == nil {
		err = checkAuthorities(f.Authorities, assigned)
	}
	return assigned, err
}

// assignPorts returns each port of the service with its backends, by port. Errors name the field,
// for the user. Backends that proxies cannot balance are errors unless the object is routed: then its
// routes balance them, and proxies forward a port to the backend that should receive most of it.
func assignPorts(spec gatewayv1alpha1.TailscaleServicesSpec, routed bool) ([]Assignment, *SpecError) {
	if err := checkPorts(spec); err != nil {
		return nil, err
	}
	if rules.AllPorts(spec) {
		if Strategy(spec) != gatewayv1alpha1.StrategyRoundRobin && !routed {
			return nil, unsupported("spec.vipService.ports %s hands on packets, which proxies do not balance by spec.loadBalancing.strategy %s; set %s, name ports",
				gatewayv1alpha1.ServicePortAll, Strategy(spec), gatewayv1alpha1.StrategyRoundRobin)
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
	out := make([]Assignment, 0, len(takers))
	for _, t := range takers {
		a, err := assignTakers(spec, t)
		if err != nil && !routed {
			return nil, err
		}
		out = append(out, a)
	}
	return out, assignTLS(spec.TLS, out)
}

// checkPorts returns an error for ports and settings of TLS that the schema of an input does not
// reject, because package/function/input drops the rule that requires a port.
func checkPorts(spec gatewayv1alpha1.TailscaleServicesSpec) *SpecError {
	for i, b := range spec.Backends {
		if b.Port == 0 && b.Kind != gatewayv1alpha1.BackendKindGateway {
			return invalidBackends("spec.backends[%d].port is required unless kind is %s", i, gatewayv1alpha1.BackendKindGateway)
		}
	}
	return checkSecure(spec)
}

// IsAll reports whether a service has all ports instead of a list. Other clusters then cannot be
// reached, because an egress proxy has one port for each.
func IsAll(ports []Assignment) bool {
	return len(ports) == 1 && ports[0].Port == rules.PortAll
}

// takers holds a port and the indexes of the backends that answer it.
type takers struct {
	port     int32
	backends []int
}

// takersOf returns the backends of each port of the service, by port: at least one.
func takersOf(spec gatewayv1alpha1.TailscaleServicesSpec) ([]takers, *SpecError) {
	ports, err := rules.Numbers(spec.VIPService.Ports)
	if err != nil {
		return nil, invalidBackends("%v", err)
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
func assignAll(spec gatewayv1alpha1.TailscaleServicesSpec) ([]Assignment, *SpecError) {
	if len(spec.VIPService.Ports) != 1 || len(spec.Backends) != 1 || spec.Backends[0].VIPPort != nil {
		return nil, invalidBackends("spec.vipService.ports %s takes one backend, without vipPort, and no other port", gatewayv1alpha1.ServicePortAll)
	}
	b := spec.Backends[0]
	if spec.TLS != nil || b.ProxyProtocol != "" || b.Protocol.Requests() {
		return nil, invalidBackends("spec.vipService.ports %s hands on packets as they come; remove tls, proxyProtocol and protocol HTTP or HTTPS, or name ports", gatewayv1alpha1.ServicePortAll)
	}
	return []Assignment{{Port: rules.PortAll, Backend: b}}, nil
}

// assignTLS sets how TLS is terminated at the ports that use TLS.
func assignTLS(tls *gatewayv1alpha1.ServiceTLS, ports []Assignment) *SpecError {
	if tls == nil {
		return nil
	}
	for i, p := range tls.Ports {
		if !slices.ContainsFunc(ports, func(a Assignment) bool { return a.Port == p }) {
			return invalidTLS("spec.tls.ports[%d] %d is not in spec.vipService.ports; add tcp:%d there", i, p, p)
		}
	}
	https := slices.ContainsFunc(ports, func(a Assignment) bool { return a.Port == rules.PortHTTPS })
	for i := range ports {
		a := &ports[i]
		if !rules.SpeaksTLS(tls, https, a.Port) {
			continue
		}
		if !rules.TerminatesTLS(tls, https, a.Port) {
			if a.http() {
				return invalidTLS("the backend of port tcp:%d has protocol %s, but spec.tls.mode Passthrough leaves its requests encrypted; set mode Terminate, or protocol TCP", a.Port, a.Backend.Protocol)
			}
			continue
		}
		a.TLS = &tailnetv1alpha1.AttachmentTLS{}
		if tls.CertificateRef != nil {
			a.TLS.SecretName = tls.CertificateRef.Name
		}
	}
	return nil
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
func checkNetworking(f Facts, ports []Assignment) *SpecError {
	if IsAll(ports) {
		if field := withNetworking(f, tailnetv1alpha1.NetworkingUserspace); field != "" {
			return &SpecError{Reason: meta.ReasonUnsupported, Message: fmt.Sprintf(
				"spec.vipService.ports %s needs proxies with Kernel networking; set %s, or name ports",
				gatewayv1alpha1.ServicePortAll, field)}
		}
		return nil
	}
	field := withNetworking(f, tailnetv1alpha1.NetworkingKernel)
	if field == "" {
		return nil
	}
	if Strategy(f.Spec) != gatewayv1alpha1.StrategyRoundRobin && !f.Routed {
		return unsupported("proxies with Kernel networking do not know spec.loadBalancing.strategy %s; set %s, set %s to Userspace", Strategy(f.Spec), gatewayv1alpha1.StrategyRoundRobin, field)
	}
	for i := range ports {
		a := &ports[i]
		if len(a.Shares) == 0 {
			continue
		}
		if !f.Routed {
			return unsupported("proxies with Kernel networking do not balance the backends of port tcp:%d; give each a different vipPort, set %s to Userspace", a.Port, field)
		}
		a.Shares, a.Alone = nil, true
	}
	return nil
}

// withNetworking returns the field that gives selected ingress proxies a kind of networking, for a
// message. It is empty if they have another kind.
func withNetworking(f Facts, n tailnetv1alpha1.Networking) string {
	for _, p := range f.Selected {
		for _, m := range p.Spec.Sets {
			if m.Direction == tailnetv1alpha1.DirectionIngress && m.Networking == string(n) {
				return "spec.proxy.networking of TailscaleEndpoints " + p.Spec.Endpoints
			}
		}
	}
	// The endpoints of the template may not exist yet.
	if t := f.Spec.EndpointTemplate; f.Provision && t != nil && string(t.Proxy.Networking) == string(n) {
		return "spec.endpointTemplate.proxy.networking"
	}
	return ""
}

// CheckForRoutes returns an error for fields that Gateways do not support for backends
// (extension/index).
func CheckForRoutes(spec gatewayv1alpha1.TailscaleServicesSpec) *SpecError {
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
	if rules.AllPorts(spec) {
		return nil
	}
	_, err := takersOf(spec)
	return err
}
