// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleservices

import (
	"slices"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/attachments"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/conditions"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/ports"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/presence"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/selection"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/succession"
	"github.com/tailscale-gateway/tailscale-gateway/internal/allow"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// A service is what follows from the facts about a Tailscale Service: results of the packages below,
// each of which is a function of the facts and of the results before it.
type service struct {
	facts

	selection  selection.Selection
	presence   presence.Presence
	succession succession.Succession

	// verdict reports whether the namespace may use the tailnet in the way of the spec.
	verdict compose.TailnetVerdict

	// ports are the ports of the service and their backends. portsErr is the error in the spec, if
	// there is one.
	ports    []ports.Assignment
	portsErr *ports.SpecError
}

// selectFor returns the service with only the selected endpoints and their succession. The users of the
// template may be missing from the facts.
func selectFor(f facts) *service {
	s := &service{facts: f}
	s.selection = selection.Select(selection.Facts{Owner: f.owner, Spec: f.spec, Sets: f.sets, Attachments: f.attachments})
	tailnet := desiredTailnet(s.selection, f.vip)
	s.presence = presence.New(f.vip, tailnet, f.shared())
	s.succession = succession.Succeed(succession.Facts{
		Selection: s.selection, Presence: s.presence, Permissions: f.permissions, Tailnet: tailnet,
		Endpoints: f.endpoints, TemplateUsers: f.templateUsers, TemplateUsersKnown: f.templateUsersKnown,
	})
	return s
}

// newService returns the service of complete facts.
func newService(f facts) *service {
	s := selectFor(f)
	s.verdict = f.access
	if f.access.Accepted {
		s.verdict = f.access.Within(violations(s, f.access.Grant)...)
	}
	s.ports, s.portsErr = ports.Assign(ports.Facts{
		Owner: f.owner, Spec: f.spec, Unfilled: f.unfilled, Routed: f.routed(),
		Selected: s.selection.Selected, Provision: s.selection.Provision,
		Gateways: f.gateways, Authorities: f.authorities, Permissions: f.permissions,
	})
	return s
}

// attached returns the ServiceAttachments by resource name.
func (s *service) attached() map[string]*tailnetv1alpha1.ServiceAttachment {
	return attachments.Attach(attachments.Facts{
		Succession: s.succession, ServiceName: s.serviceName(),
		Ports: s.ports, PortsErr: s.portsErr, Authorities: s.authorities, MayMake: s.mayMake(), Drain: s.drains(),
	})
}

// conditionFacts returns what the conditions follow from.
func (s *service) conditionFacts() conditions.Facts {
	return conditions.Facts{
		Succession: s.succession, ServiceName: s.serviceName(), Existing: s.conditions,
		VIPService: s.vip, Discovery: s.discovery, Verdict: s.verdict, StaysShared: s.staysShared(), AsksDrain: s.asksDrain(),
		Ports: s.ports, PortsErr: s.portsErr, RefusedSpec: s.refusedSpec(),
		RouteOnly: s.routeOnly(), Answers: s.answers(), Machines: s.machines(),
	}
}

// desiredTailnet returns the desired tailnet of the service: that of the selected endpoints. If they are
// in several tailnets, or there are none, the service stays where it is, because its address would
// be lost. It is empty if nothing determines it.
func desiredTailnet(s selection.Selection, vip *tailnetv1alpha1.VIPService) string {
	if t := s.Tailnets(); len(t) == 1 {
		return t[0]
	}
	return presence.Tailnet(vip)
}

// violations returns how the spec violates the namespace's grant. Elements without a violation are
// nil.
func violations(s *service, g *allow.Grant) []*allow.ViolationError {
	v := s.spec.VIPService
	name := "spec.vipService.name"
	if v.Name == "" {
		name = "metadata.name"
	}
	out := []*allow.ViolationError{
		g.Kind("spec.vipService", tailnetv1alpha1.VIPServiceKind),
		g.Service(name, s.serviceName()),
		allow.Tags(g, "spec.vipService.tags", v.Tags),
		allow.Tags(g, "spec.vipService.recordTags", v.RecordTags),
	}
	if s.discovers() {
		out = append(out, g.Kind("spec.serviceDiscovery", tailnetv1alpha1.DiscoveryKind))
	}
	if t := s.spec.EndpointTemplate; s.selection.Provision && t != nil {
		out = append(out, allow.Tags(g, "spec.endpointTemplate.tags", t.Tags))
	}
	return out
}

// refused reports whether the namespace may not use the tailnet. Nothing is composed then. A
// tailnet that no longer exists, or whose selector is invalid, does not refuse: existing children
// stay.
func (s *service) refused() bool {
	return s.verdict.Reason == meta.ReasonNamespaceNotAllowed
}

// nameReported reports whether the status has the service's DNS name. The object is not Ready before
// that: a client that waits for it reads the name next. Other conditions do not wait. They are
// written first, and the write of the status also has Crossplane's claim to them.
func (s *service) nameReported() bool {
	return s.step || s.reported != nil && s.reported.DNSName != ""
}

// answers reports whether a machine is approved as a host of the service and advertises it. The
// service is not ready before. Machines of other clusters count if this cluster has none to host
// it, see routeOnly. A service that no cluster hosts is ready without a machine, because it is only
// a backend of routes.
func (s *service) answers() bool {
	if s.presence.IsUnrouted() {
		return false
	}
	if s.drains() {
		return presence.Count(s.presence.AllHosts(), tailnetv1alpha1.ServiceHost.Serves) > 0
	}
	if s.routeOnly() {
		return !s.shared() || presence.Count(s.presence.AllHosts(), tailnetv1alpha1.ServiceHost.Serves) > 0
	}
	return presence.Count(s.presence.Hosts(), tailnetv1alpha1.ServiceHost.Serves) > 0
}

// routeOnly reports whether this cluster does not host the service: none of the selected endpoints
// has ingress proxies. Gateways route to its backends, and to other clusters that share it.
func (s *service) routeOnly() bool {
	return len(s.selection.Selected) > 0 && !slices.ContainsFunc(s.selection.Selected, selection.HasIngress) &&
		(!s.selection.Provision || s.spec.EndpointTemplate.Proxy.ConnectionType == gatewayv1alpha1.ConnectionTypeEgress)
}

// problem reports whether there is something for the user to fix, independent of the children's
// reports.
func (s *service) problem() bool {
	return s.selection.Err != nil || s.portsErr != nil || s.staysShared() || !s.verdict.Accepted || s.selection.SeveralTailnets() || s.presence.Moving ||
		len(s.selection.Selected) == 0 || s.selection.NoneAllows() || slices.ContainsFunc(s.selection.Selected, s.succession.HostsBefore)
}
