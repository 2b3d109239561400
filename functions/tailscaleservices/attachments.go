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

// wantedAttachments returns what each selected endpoints serves, and which other clusters' services
// it reaches, by resource name. What is served stays as it is while the spec asks for the
// impossible.
//
// Attachments come with the VIPService, before it has an address: a child that Crossplane
// learns of in a later run costs four writes of the composite. It writes its references
// and conditions then, takes the conditions back in the next run, whose cache lags, and
// sets them again.
func (s *service) wantedAttachments() map[string]*tailnetv1alpha1.ServiceAttachment {
	out := map[string]*tailnetv1alpha1.ServiceAttachment{}
	if s.sel.err != nil || s.severalTailnets() {
		for name, a := range s.attachments {
			out[name] = s.copyAttachment(a)
		}
		return out
	}
	if s.moving() || s.vip == nil && !s.mayMake() {
		return out
	}
	for _, p := range slices.Concat(s.sel.hosting(s.owner, s.spec.EndpointTemplate), s.staying) {
		if hasIngress(p) {
			name := prefixAttachment + p.Spec.Endpoints
			s.want(out, name, len(s.addresses()) > 0 || !hasAddresses(s.attachments[name]), func() *tailnetv1alpha1.ServiceAttachment {
				a := s.composeIngress(p)
				keepPorts(a, s.attachments[name], s.tailnetPorts())
				return a
			})
			s.wantOwn(out, p)
		}
		if !hasDirection(p, tailnetv1alpha1.DirectionEgress) || allPorts(s.ports) {
			continue
		}
		if s.portsErr == nil && len(s.remotePorts()) == 0 {
			continue
		}
		for _, c := range s.remotes() {
			name := names.Child(s.owner.Name, p.Spec.Endpoints, "remote", c.ClusterID)
			s.want(out, prefixRemote+name, len(c.Addresses) > 0, func() *tailnetv1alpha1.ServiceAttachment {
				return s.composeRemote(name, p, c)
			})
		}
	}
	return out
}

// hasAddresses reports whether an attachment is served.
func hasAddresses(a *tailnetv1alpha1.ServiceAttachment) bool {
	return a != nil && len(a.Spec.Addresses) > 0
}

// want adds an attachment: as it is composed if it can be, otherwise as it was observed.
func (s *service) want(out map[string]*tailnetv1alpha1.ServiceAttachment, name string, can bool, build func() *tailnetv1alpha1.ServiceAttachment) {
	if s.portsErr == nil && can {
		out[name] = build()
		return
	}
	if old := s.attachments[name]; old != nil {
		out[name] = s.copyAttachment(old)
	}
}

// wantOwn adds the attachment of this cluster's own service, by which other clusters reach the
// backends here. There is none if they could reach nothing.
func (s *service) wantOwn(out map[string]*tailnetv1alpha1.ServiceAttachment, p tailnetv1alpha1.ProxySet) {
	if !s.shared() || s.portsErr == nil && (allPorts(s.ports) || len(s.remotePorts()) == 0) {
		return
	}
	name := prefixOwn + p.Spec.Endpoints
	s.want(out, name, len(s.ownAddresses()) > 0, func() *tailnetv1alpha1.ServiceAttachment {
		a := s.composeOwn(p)
		keepPorts(a, s.attachments[name], s.vip.Status.AtProvider.OwnPorts)
		return a
	})
}

// allPorts reports whether a service has all ports, and not some by number. Those of
// another cluster cannot be reached then: an egress proxy has a port for each.
func allPorts(ports []assignment) bool {
	return len(ports) == 1 && ports[0].port == portAll
}

// composeIngress returns the attachment by which proxies host the service.
func (s *service) composeIngress(p tailnetv1alpha1.ProxySet) *tailnetv1alpha1.ServiceAttachment {
	spec := s.hosted(p, s.ports)
	spec.ServiceName, spec.Addresses = tailnetv1alpha1.ServiceName(s.serviceName()), s.addresses()
	return s.attachment(names.Child(s.owner.Name, p.Spec.Endpoints), spec)
}

// composeOwn returns the attachment by which proxies host this cluster's own service, as they do
// the shared one, except for the ports of Gateways. Clients use the shared service's name, so
// that is what certificates are for.
func (s *service) composeOwn(p tailnetv1alpha1.ProxySet) *tailnetv1alpha1.ServiceAttachment {
	spec := s.hosted(p, slices.DeleteFunc(slices.Clone(s.ports), func(a assignment) bool { return !a.remote() }))
	spec.ServiceName, spec.Addresses = tailnetv1alpha1.ServiceName(s.vip.Status.AtProvider.OwnServiceName), s.ownAddresses()
	return s.attachment(names.Child(s.owner.Name, p.Spec.Endpoints, suffixOwn), spec)
}

// hosted returns what proxies serve at some ports. The service that has the ports is not part of
// it.
func (s *service) hosted(p tailnetv1alpha1.ProxySet, assigned []assignment) tailnetv1alpha1.ServiceAttachmentSpec {
	ports := make([]tailnetv1alpha1.AttachmentPort, len(assigned))
	named := false
	for i, a := range assigned {
		ports[i] = tailnetv1alpha1.AttachmentPort{
			Port:          a.port,
			Backend:       &tailnetv1alpha1.AttachmentBackend{Host: a.at.Host, Port: a.at.Port},
			TLS:           a.tls,
			ProxyProtocol: proxyProtocols[a.backend.ProxyProtocol],
		}
		if a.http() {
			ports[i].Protocol = tailnetv1alpha1.AttachmentProtocolHTTP
		}
		named = named || a.tls != nil
	}
	spec := tailnetv1alpha1.ServiceAttachmentSpec{
		Endpoints:   p.Spec.Endpoints,
		Services:    s.owner.Name,
		Direction:   tailnetv1alpha1.DirectionIngress,
		Ports:       ports,
		HealthCheck: healthCheck(s.spec.LoadBalancing),
	}
	// Others have no use for the name, and would be written again when it comes.
	if named {
		spec.DNSName = s.dnsName()
	}
	return spec
}

// proxyProtocols are the versions by name. That of none is 0.
var proxyProtocols = map[gatewayv1alpha1.ProxyProtocol]int32{
	gatewayv1alpha1.ProxyProtocolV1: 1,
	gatewayv1alpha1.ProxyProtocolV2: 2,
}

// composeRemote returns the attachment by which egress proxies reach another cluster's own
// service. Its check is a connection, whatever the check of the backends behind them: a proxy
// that terminates TLS would not understand a plain request.
func (s *service) composeRemote(name string, p tailnetv1alpha1.ProxySet, c tailnetv1alpha1.ServiceConsumer) *tailnetv1alpha1.ServiceAttachment {
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
	// Their certificates are for the shared service's name, which Gateways ask for.
	named := slices.ContainsFunc(s.ports, func(a assignment) bool { return a.remote() && a.tls != nil })
	if named && s.vip != nil {
		spec.DNSName = s.vip.Status.AtProvider.DNSName
	}
	return s.attachment(name, spec)
}

// copyAttachment returns an observed attachment as it is.
func (s *service) copyAttachment(a *tailnetv1alpha1.ServiceAttachment) *tailnetv1alpha1.ServiceAttachment {
	return s.attachment(a.GetName(), a.Spec)
}

// attachment returns an attachment of a name.
func (s *service) attachment(name string, spec tailnetv1alpha1.ServiceAttachmentSpec) *tailnetv1alpha1.ServiceAttachment {
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

// provisions reports whether an attachment needs something of its endpoints before agents can
// act on it: a port, or the right to read a Secret.
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
