// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleservices

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

// attachments returns the services that each selected endpoints serves, and the other
// clusters' services that it reaches, by resource name. Existing attachments stay unchanged while
// the spec is invalid, unless proxies may no longer connect to a host, or serve a port.
//
// Attachments are created together with the VIPService, before it has an address: a child that
// Crossplane adds in a later run costs four writes of the composite. Crossplane then writes the
// references and conditions, reverts the conditions in the next run, whose cache lags, and sets
// them again.
func attachments(s *service) map[string]*tailnetv1alpha1.ServiceAttachment {
	out := map[string]*tailnetv1alpha1.ServiceAttachment{}
	if s.sel.err != nil || s.severalTailnets() {
		for name, a := range s.attachments {
			if s.keepsAttachment(a) {
				out[name] = copyAttachment(s, a)
			}
		}
		return out
	}
	if s.moving() || s.vip == nil && !s.mayMake() {
		return out
	}
	for _, p := range slices.Concat(s.sel.hosting(s.owner, s.spec.EndpointTemplate), s.staying) {
		switch {
		case !hasIngress(p):
		case !s.allowsAll(p):
			for _, name := range s.attachmentsBefore(p) {
				out[name] = copyAttachment(s, s.attachments[name])
			}
		default:
			name := prefixAttachment + p.Spec.Endpoints
			keepOrBuild(s, out, name, len(s.addresses()) > 0 || !hasAddresses(s.attachments[name]), func() *tailnetv1alpha1.ServiceAttachment {
				a := composeIngress(s, p)
				keepPorts(a, s.attachments[name], s.tailnetPorts())
				return a
			})
			addOwn(s, out, p)
		}
		if !hasDirection(p, tailnetv1alpha1.DirectionEgress) || allPorts(s.ports) {
			continue
		}
		if s.portsErr == nil && len(s.remotePorts()) == 0 {
			continue
		}
		for _, c := range s.remotes() {
			name := names.Child(s.owner.Name, p.Spec.Endpoints, "remote", c.ClusterID)
			keepOrBuild(s, out, prefixRemote+name, len(c.Addresses) > 0, func() *tailnetv1alpha1.ServiceAttachment {
				return composeRemote(s, name, p, c)
			})
		}
	}
	return out
}

// hasAddresses reports whether an attachment is served.
func hasAddresses(a *tailnetv1alpha1.ServiceAttachment) bool {
	return a != nil && len(a.Spec.Addresses) > 0
}

// keepOrBuild adds an attachment: as it is composed if it can be, otherwise as it was observed.
func keepOrBuild(s *service, out map[string]*tailnetv1alpha1.ServiceAttachment, name string, allowed bool, build func() *tailnetv1alpha1.ServiceAttachment) {
	if s.portsErr == nil && allowed {
		out[name] = build()
		return
	}
	if old := s.attachments[name]; old != nil && s.keepsAttachment(old) {
		out[name] = copyAttachment(s, old)
	}
}

// addOwn adds the attachment of this cluster's separate service, by which other clusters reach the
// backends of this cluster. There is none without backends to reach.
func addOwn(s *service, out map[string]*tailnetv1alpha1.ServiceAttachment, p tailnetv1alpha1.ProxySet) {
	if !s.shared() || s.portsErr == nil && (allPorts(s.ports) || len(s.remotePorts()) == 0) {
		return
	}
	name := prefixOwn + p.Spec.Endpoints
	keepOrBuild(s, out, name, len(s.ownAddresses()) > 0, func() *tailnetv1alpha1.ServiceAttachment {
		a := composeOwn(s, p)
		keepPorts(a, s.attachments[name], s.vip.Status.AtProvider.OwnPorts)
		return a
	})
}

// allPorts reports whether a service has all ports instead of a list. Other clusters then cannot be
// reached, because an egress proxy has one port for each.
func allPorts(ports []assignment) bool {
	return len(ports) == 1 && ports[0].port == portAll
}

// composeIngress returns the attachment by which proxies host the service.
func composeIngress(s *service, p tailnetv1alpha1.ProxySet) *tailnetv1alpha1.ServiceAttachment {
	spec := hosted(s, p, s.ports)
	spec.ServiceName, spec.Addresses = tailnetv1alpha1.ServiceName(s.serviceName()), s.addresses()
	return attachment(s, names.Child(s.owner.Name, p.Spec.Endpoints), spec)
}

// composeOwn returns the attachment by which proxies host this cluster's separate service. It
// matches that of the shared service, except for the ports of Gateways. Clients use the shared
// service's name, so certificates are for that name.
func composeOwn(s *service, p tailnetv1alpha1.ProxySet) *tailnetv1alpha1.ServiceAttachment {
	spec := hosted(s, p, slices.DeleteFunc(slices.Clone(s.ports), func(a assignment) bool { return !a.remote() }))
	spec.ServiceName, spec.Addresses = tailnetv1alpha1.ServiceName(s.vip.Status.AtProvider.OwnServiceName), s.ownAddresses()
	return attachment(s, names.Child(s.owner.Name, p.Spec.Endpoints, suffixOwn), spec)
}

// hosted returns the attachment for some ports, without the service that has the ports.
func hosted(s *service, p tailnetv1alpha1.ProxySet, assigned []assignment) tailnetv1alpha1.ServiceAttachmentSpec {
	ports := make([]tailnetv1alpha1.AttachmentPort, len(assigned))
	named := false
	for i, a := range assigned {
		ports[i] = tailnetv1alpha1.AttachmentPort{
			Port:          a.port,
			Backend:       &tailnetv1alpha1.AttachmentBackend{Host: a.address.Host, Port: a.address.Port},
			TLS:           a.tls,
			ProxyProtocol: proxyProtocols[a.backend.ProxyProtocol],
		}
		ports[i].Backends, ports[i].Strategy = sharesOf(s.spec.LoadBalancing, a)
		switch a.backend.Protocol {
		case gatewayv1alpha1.BackendProtocolHTTP:
			ports[i].Protocol = tailnetv1alpha1.AttachmentProtocolHTTP
		case gatewayv1alpha1.BackendProtocolHTTPS:
			// Agents of earlier versions would forward bytes to this backend, without TLS.
			ports[i].Protocol, ports[i].Backend = tailnetv1alpha1.AttachmentProtocolHTTPS, nil
		case gatewayv1alpha1.BackendProtocolTCP:
		}
		named = named || a.tls != nil
	}
	spec := tailnetv1alpha1.ServiceAttachmentSpec{
		Endpoints:   p.Spec.Endpoints,
		Services:    s.owner.Name,
		Direction:   tailnetv1alpha1.DirectionIngress,
		Ports:       ports,
		HealthCheck: healthCheck(s.spec.LoadBalancing),
		Authorities: s.trusted(assigned),
	}
	// Other attachments do not use the name, and would be written again when it becomes known.
	if named {
		spec.DNSName = s.dnsName()
	}
	return spec
}

// proxyProtocols maps names to versions of the PROXY protocol. The version without a name is 0.
var proxyProtocols = map[gatewayv1alpha1.ProxyProtocol]int32{
	gatewayv1alpha1.ProxyProtocolV1: 1,
	gatewayv1alpha1.ProxyProtocolV2: 2,
}

// composeRemote returns the attachment by which egress proxies reach another cluster's separate
// service. Its check is a connection, whatever the check of the backends: a proxy that terminates
// TLS would not understand a plain request.
func composeRemote(s *service, name string, p tailnetv1alpha1.ProxySet, c tailnetv1alpha1.ServiceConsumer) *tailnetv1alpha1.ServiceAttachment {
	check := healthCheck(s.spec.LoadBalancing)
	check.Path = ""
	spec := tailnetv1alpha1.ServiceAttachmentSpec{
		Endpoints:   p.Spec.Endpoints,
		Services:    s.owner.Name,
		Direction:   tailnetv1alpha1.DirectionEgress,
		ServiceName: tailnetv1alpha1.ServiceName(c.ServiceName),
		Addresses:   c.Addresses,
		Ports:       s.remotePorts(),
		HealthCheck: check,
		ClusterID:   c.ClusterID,
	}
	// Their certificates are for the shared service's name, which Gateways request.
	named := slices.ContainsFunc(s.ports, func(a assignment) bool { return a.remote() && a.tls != nil })
	if named && s.vip != nil {
		spec.DNSName = s.vip.Status.AtProvider.DNSName
	}
	return attachment(s, name, spec)
}

// copyAttachment returns an observed attachment unchanged.
func copyAttachment(s *service, a *tailnetv1alpha1.ServiceAttachment) *tailnetv1alpha1.ServiceAttachment {
	return attachment(s, a.GetName(), a.Spec)
}

// attachment returns an attachment of a name.
func attachment(s *service, name string, spec tailnetv1alpha1.ServiceAttachmentSpec) *tailnetv1alpha1.ServiceAttachment {
	l := s.labels()
	l[meta.LabelEndpoints] = spec.Endpoints
	l[meta.LabelDirection] = strings.ToLower(string(spec.Direction))
	if provisions(spec) {
		l[meta.LabelProvision] = "true"
	}
	return &tailnetv1alpha1.ServiceAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.owner.Namespace, Labels: l},
		Spec:       spec,
	}
}

// provisions reports whether an attachment needs a port or the right to read a Secret before agents
// can use it.
func provisions(spec tailnetv1alpha1.ServiceAttachmentSpec) bool {
	if spec.Direction == tailnetv1alpha1.DirectionEgress {
		return true
	}
	for _, p := range spec.Ports {
		if p.TLS != nil && p.TLS.SecretName != "" {
			return true
		}
	}
	return false
}
