// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleservices

import (
	"slices"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/allow"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// suffixOwn ends the names of attachments of this cluster's separate service. Its dash makes them
// end in a hash, so no other child of any service has such a name.
const suffixOwn = "own-service"

// A service is what follows from the facts about a Tailscale Service. Functions of it return the
// parts of a plan: attachments, conditions, children and the status.
type service struct {
	facts

	sel selection
	presence
	succession

	// verdict reports whether the namespace may use the tailnet in the way of the spec.
	verdict compose.TailnetVerdict

	// ports are the ports of the service and their backends. portsErr is the error in the spec, if
	// there is one.
	ports    []assignment
	portsErr *specError
}

// selectFor returns the service with only the selected endpoints.
func selectFor(f facts) *service {
	s := &service{facts: f, sel: selectEndpoints(f)}
	s.presence = present(f, s.tailnet())
	return s
}

// newService returns the service of complete facts.
func newService(f facts) *service {
	s := selectFor(f)
	s.succession = s.succeed()
	s.verdict = f.access
	if f.access.Accepted {
		s.verdict = f.access.Within(violations(s, f.access.Grant)...)
	}
	s.ports, s.portsErr = assign(s)
	return s
}

// tailnet returns the desired tailnet of the service: that of the selected endpoints. If they are
// in several tailnets, or there are none, the service stays where it is, because its address would
// be lost. It is empty if nothing determines it.
func (s *service) tailnet() string {
	if t := s.sel.tailnets(s.spec.EndpointTemplate); len(t) == 1 {
		return t[0]
	}
	return s.observedTailnet()
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
	if t := s.spec.EndpointTemplate; s.sel.provision && t != nil {
		out = append(out, allow.Tags(g, "spec.endpointTemplate.tags", t.Tags))
	}
	return out
}

// severalTailnets reports whether the selected endpoints are of more than one tailnet.
func (s *service) severalTailnets() bool {
	return len(s.sel.tailnets(s.spec.EndpointTemplate)) > 1
}

// refused reports whether the namespace may not use the tailnet. Nothing is composed then. A
// tailnet that no longer exists, or whose selector is invalid, does not refuse: existing children
// stay.
func (s *service) refused() bool {
	return s.verdict.Reason == meta.ReasonNamespaceNotAllowed
}

// moving reports whether the service is in another tailnet than it should be. It must be deleted
// there before it is created here.
func (s *service) moving() bool {
	t := s.observedTailnet()
	return t != "" && t != s.tailnet()
}

// shared reports whether other clusters may also define the service.
func (f facts) shared() bool {
	return f.spec.Sharing == gatewayv1alpha1.SharingShared
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
	if s.isUnrouted() {
		return false
	}
	if s.routeOnly() {
		return !s.shared() || count(s.allHosts(), tailnetv1alpha1.ServiceHost.Serves) > 0
	}
	return count(s.hosts(), tailnetv1alpha1.ServiceHost.Serves) > 0
}

// routeOnly reports whether this cluster does not host the service: none of the selected endpoints
// has ingress proxies. Gateways route to its backends, and to other clusters that share it.
func (s *service) routeOnly() bool {
	return len(s.sel.sets) > 0 && !slices.ContainsFunc(s.sel.sets, hasIngress) &&
		(!s.sel.provision || s.spec.EndpointTemplate.Proxy.ConnectionType == gatewayv1alpha1.ConnectionTypeEgress)
}

// problem reports whether there is something for the user to fix, independent of the children's
// reports.
func (s *service) problem() bool {
	return s.sel.err != nil || s.portsErr != nil || !s.verdict.Accepted || s.severalTailnets() || s.moving() ||
		len(s.sel.sets) == 0 || s.noneAllows() || slices.ContainsFunc(s.sel.sets, s.hostsBefore)
}
