// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleservices

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/attachments"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/ports"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/selection"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/succession"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// children returns the children of the service.
func (s *service) children() compose.Children {
	var out compose.Children
	if s.refused() {
		return out
	}
	if wantsEndpoints(s) {
		out.Add(nameEndpoints, composeEndpoints(s), endpointsReady(s.endpoints))
	}
	if wantsVIPService(s) {
		out.Add(nameVIPService, composeVIPService(s), s.presence.Created())
	}
	served := s.attached()
	for _, name := range slices.Sorted(maps.Keys(served)) {
		out.Add(name, served[name], true)
	}
	if wantsDiscovery(s) {
		out.Add(nameDiscovery, composeDiscovery(s), true)
	}
	return out
}

// wantsEndpoints reports whether the endpoints of the template are wanted. An invalid selector does
// not delete existing ones.
func wantsEndpoints(s *service) bool {
	broken := s.selection.Err != nil && s.endpoints != nil && s.spec.EndpointTemplate != nil
	provision := s.selection.Provision && (s.verdict.Accepted || s.endpoints != nil) ||
		s.endpoints != nil && s.succession.KeepsTemplate()
	return (provision || broken) && selection.MatchesTemplate(s.endpoints, s.spec.EndpointTemplate)
}

// endpointsReady reports whether endpoints are ready.
func endpointsReady(e *gatewayv1alpha1.TailscaleEndpoints) bool {
	return e != nil && e.Status.GetCondition(xpv2.TypeReady).Status == corev1.ConditionTrue
}

// wantsVIPService reports whether the service is wanted. Without selected endpoints an existing
// service stays, so that it keeps its address, but none is created.
func wantsVIPService(s *service) bool {
	return !s.presence.Moving && s.succession.Tailnet != "" && (s.vip != nil || s.mayMake())
}

// mayMake reports whether a service may be created. It may also be created before its backend, a
// Gateway or a Service, exists, so that it gets an address sooner.
func (s *service) mayMake() bool {
	return s.succession.Tailnet != "" && s.verdict.Accepted && s.selection.Err == nil && !s.selection.SeveralTailnets() && !s.refusedSpec()
}

// refusedSpec reports whether the spec is invalid, independent of objects that appear later.
func (s *service) refusedSpec() bool {
	// The ports of a Service that does not exist yet may be those of the Tailscale Service.
	return s.portsErr != nil && (!slices.Contains(pendingReasons, s.portsErr.Reason) || len(s.spec.VIPService.Ports) == 0)
}

// pendingReasons are the reasons of a port whose backend does not exist yet.
var pendingReasons = []xpv2.ConditionReason{meta.ReasonGatewayNotFound, meta.ReasonGatewayNotValid, meta.ReasonServiceNotFound}

// labels returns the labels of every child.
func (s *service) labels() map[string]string {
	return map[string]string{meta.LabelServices: s.owner.Name}
}

// composeEndpoints returns the endpoints of the template.
func composeEndpoints(s *service) *gatewayv1alpha1.TailscaleEndpoints {
	t := s.spec.EndpointTemplate
	return &gatewayv1alpha1.TailscaleEndpoints{
		ObjectMeta: metav1.ObjectMeta{
			Name:      selection.TemplateName(s.owner),
			Namespace: s.owner.Namespace,
			Labels:    selection.TemplateLabels(s.owner, s.spec),
		},
		Spec: gatewayv1alpha1.TailscaleEndpointsSpec{Tailnet: t.Tailnet, Tags: t.Tags, Proxy: t.Proxy, Ports: t.Ports},
	}
}

// composeVIPService returns the Tailscale Service.
func composeVIPService(s *service) *tailnetv1alpha1.VIPService {
	t := s.spec.VIPService
	ports := make([]tailnetv1alpha1.ServicePort, len(t.Ports))
	for i, p := range t.Ports {
		ports[i] = tailnetv1alpha1.ServicePort(p)
	}
	recordPorts := s.recordPorts()
	// A port that no proxy serves would make all of them unfit as hosts.
	if s.vip != nil {
		current := s.vip.Spec.ForProvider
		if s.portsErr != nil {
			ports, recordPorts = current.Ports, current.RecordPorts
		} else if string(current.Name) == s.serviceName() {
			ports = attachments.PortsForTailnet(s.attachments, ports, current.Ports, selection.PrefixAttachment)
			if recordPorts != nil && current.RecordPorts != nil {
				recordPorts = attachments.PortsForTailnet(s.attachments, recordPorts, current.RecordPorts, succession.PrefixOwn)
			}
		}
	}
	l := s.labels()
	l[meta.LabelTailnet] = s.succession.Tailnet
	return &tailnetv1alpha1.VIPService{
		ObjectMeta: metav1.ObjectMeta{Name: s.owner.Name, Namespace: s.owner.Namespace, Labels: l},
		Spec: tailnetv1alpha1.VIPServiceSpec{
			ManagedResourceSpec: xpv2.ManagedResourceSpec{ProviderConfigReference: compose.ProviderConfigRef(s.succession.Tailnet)},
			ForProvider: tailnetv1alpha1.VIPServiceParameters{
				Name:        tailnetv1alpha1.ServiceName(s.serviceName()),
				DisplayName: t.DisplayName,
				Comment:     t.Comment,
				Ports:       ports,
				Tags:        compose.Tags(t.Tags),
				Annotations: t.Annotations,
				Sharing:     s.sharing,
				Drain:       s.drains(),
				Fencing:     s.spec.Fencing,
				Routes:      recordRoutes(s),
				Export:      s.exported(),
				RecordTags:  compose.Tags(t.RecordTags),
				RecordPorts: recordPorts,
				AutoApprove: t.AutoApprove,
				HostTags:    hostTags(s),

				AdoptionPolicy: tailnetv1alpha1.AdoptionPolicy(t.AdoptionPolicy),
				DeletionPolicy: tailnetv1alpha1.VIPServiceDeletionPolicy(t.DeletionPolicy),
			},
		},
	}
}

// recordPorts returns the ports of this cluster's own service, if they are not all ports of the
// shared one: its proxies serve those at which other clusters may take over.
func (s *service) recordPorts() []tailnetv1alpha1.ServicePort {
	remote := ports.RemotePorts(s.ports)
	if !s.shared() || len(remote) == len(s.ports) {
		return nil
	}
	var out []tailnetv1alpha1.ServicePort
	for _, p := range remote {
		out = append(out, tailnetv1alpha1.ServicePortOf(p.Port))
	}
	return out
}

// recordRoutes returns the routes that lead to the service, for this cluster's record. A service that
// is not shared has no record.
func recordRoutes(s *service) []string {
	if !s.shared() {
		return nil
	}
	out := slices.Clone(s.spec.VIPService.Routes)
	for _, r := range s.routes() {
		if len(out) < maxRoutes && !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	slices.Sort(out)
	return out
}

// exported returns what the record says of the Service for clusters that import it. A service that is not
// shared has no record.
func (s *service) exported() *tailnetv1alpha1.ExportedService {
	if !s.shared() {
		return nil
	}
	return s.spec.VIPService.Export
}

// maxRoutes is the maximum number of routes of a record, in the schema.
const maxRoutes = 64

// routes returns the routes of Gateways that lead to the service, as the extension reports them.
func (f facts) routes() []string {
	if f.health == nil {
		return nil
	}
	return f.health.Routes
}

// hostTags returns the tags of machines that may be approved as hosts.
func hostTags(s *service) []tailnetv1alpha1.Tag {
	switch {
	case s.selection.Provision && !s.selection.Provisioned():
		return compose.Tags(s.tailnetTags, compose.Tags(s.spec.EndpointTemplate.Tags), selection.Tags(slices.Concat(s.selection.Selected, s.succession.Staying)))
	case s.vip != nil && (s.selection.SeveralTailnets() || len(s.selection.Selected) == 0):
		return s.vip.Spec.ForProvider.HostTags
	}
	return selection.Tags(slices.Concat(s.selection.Selected, s.succession.Staying))
}
