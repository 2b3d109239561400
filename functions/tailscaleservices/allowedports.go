// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleservices

import (
	"fmt"
	"slices"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// spec.ports of a TailscaleEndpoints is a permission of the owner of the proxies: they host only
// services all of whose ports are in the list. A service takes all ports or none, because Tailscale
// accepts a machine as a host only while it serves each port of the service.
//
// A hosted service stays or ends, which depends on the author of a change:
//
//   - The owner of the proxies removes a port from the list: a service with that port is withdrawn from
//     them, even if no other proxies host it. A permission that lasts until somebody else takes over is
//     none. The Tailscale Service stays with its address, so nothing but the route to it is lost.
//   - The owner of the service adds a port that is not in the list: the proxies continue to host the
//     ports from before, until other selected proxies host the service.
//   - An upgrade gives a list its meaning for ingress: what is hosted stays, until the list changes. The
//     function of the TailscaleEndpoints recognizes that, see ProxySetPorts.KeepHosted.
//   - The owner of the service removes a port: proxies serve it until the tailnet has removed it, even if
//     the list lacks it (portchange.go).
//   - A list is not known, because the ProxySet is of an earlier version: it limits nothing.

// mayServe reports whether endpoints allow a port. 0 stands for all ports.
func (f facts) mayServe(p tailnetv1alpha1.ProxySet, port int32) bool {
	return allows(p.Spec.IngressPorts, port) || f.keeps(p, port)
}

// allows reports whether ports allow a port.
func allows(ports *tailnetv1alpha1.ProxySetPorts, port int32) bool {
	return ports == nil || ports.All || slices.Contains(ports.Allowed, port)
}

// keeps reports whether endpoints host the service at a port, and may continue although they do not
// allow it.
func (f facts) keeps(p tailnetv1alpha1.ProxySet, port int32) bool {
	a := f.attachments[prefixAttachment+p.Spec.Endpoints]
	return p.Spec.IngressPorts != nil && p.Spec.IngressPorts.KeepHosted && a != nil &&
		slices.ContainsFunc(a.Spec.Ports, func(existing tailnetv1alpha1.AttachmentPort) bool { return existing.Port == port })
}

// mayServeAttachment reports whether endpoints allow each port of an existing attachment by which they
// host the service, apart from ports that the spec no longer has, which are served until the tailnet has
// removed them. Endpoints that do not exist refuse nothing.
func (f facts) mayServeAttachment(a *tailnetv1alpha1.ServiceAttachment) bool {
	i := slices.IndexFunc(f.sets, func(p tailnetv1alpha1.ProxySet) bool { return p.Spec.Endpoints == a.Spec.Endpoints })
	wanted := f.wantedPorts()
	return i < 0 || a.Spec.Direction != tailnetv1alpha1.DirectionIngress ||
		!slices.ContainsFunc(a.Spec.Ports, func(port tailnetv1alpha1.AttachmentPort) bool {
			return (wanted == nil || slices.Contains(wanted, port.Port)) && !f.mayServe(f.sets[i], port.Port)
		})
}

// wantedPorts returns the ports of the spec as attachments have them, or nil if the spec is invalid.
func (f facts) wantedPorts() []int32 {
	if allOf(f.spec) {
		return []int32{portAll}
	}
	ports, err := servicePorts(f.spec.VIPService.Ports)
	if err != nil {
		return nil
	}
	return ports
}

// missingPorts returns the ports of the service that endpoints do not allow.
func (f facts) missingPorts(p tailnetv1alpha1.ProxySet) []int32 {
	return slices.DeleteFunc(f.wantedPorts(), func(port int32) bool { return f.mayServe(p, port) })
}

// allowsAll reports whether endpoints allow all ports of the service.
func (f facts) allowsAll(p tailnetv1alpha1.ProxySet) bool { return len(f.missingPorts(p)) == 0 }

// mayHost reports whether endpoints have or get ingress proxies, and allow all ports of the service.
func (f facts) mayHost(p tailnetv1alpha1.ProxySet) bool { return hasIngress(p) && f.allowsAll(p) }

// attachmentsBefore returns the names of the attachments by which endpoints that do not allow all ports of
// the spec host the service at ports that they allow. These stay unchanged until others have taken over.
func (s *service) attachmentsBefore(p tailnetv1alpha1.ProxySet) []string {
	return slices.DeleteFunc([]string{prefixAttachment + p.Spec.Endpoints, prefixOwn + p.Spec.Endpoints}, func(name string) bool {
		a := s.attachments[name]
		return a == nil || !s.keepsAttachment(a) || s.hasTakenOver()
	})
}

// hostsBefore reports whether endpoints that do not allow all ports of the spec continue to host the
// service at its ports from before.
func (s *service) hostsBefore(p tailnetv1alpha1.ProxySet) bool {
	return hasIngress(p) && !s.allowsAll(p) && len(s.attachmentsBefore(p)) > 0
}

// isBarred reports whether selected endpoints have ingress proxies, and no longer or never host the
// service because of its ports.
func (s *service) isBarred(p tailnetv1alpha1.ProxySet) bool {
	return hasIngress(p) && !s.allowsAll(p) && !s.hostsBefore(p)
}

// noneAllows reports whether there are selected endpoints with ingress proxies, and none of them allows
// all ports of the service.
func (s *service) noneAllows() bool {
	hosting := s.sel.hosting(s.owner, s.spec.EndpointTemplate)
	return slices.ContainsFunc(hosting, hasIngress) && !slices.ContainsFunc(hosting, s.mayHost)
}

// portsAllowed returns the condition PortsAllowed, or nil if there is nothing to report and the object
// does not have the condition.
func portsAllowed(s *service) *compose.Condition {
	c := &compose.Condition{Type: meta.TypePortsAllowed, Status: compose.False}
	var refused, unchanged, retained []string
	for _, p := range s.sel.hosting(s.owner, s.spec.EndpointTemplate) {
		if !hasIngress(p) {
			continue
		}
		missing := s.missingPorts(p)
		switch tolerated := slices.DeleteFunc(s.wantedPorts(), func(port int32) bool { return allows(p.Spec.IngressPorts, port) }); {
		case len(missing) > 0 && s.hostsBefore(p):
			unchanged = append(unchanged, lack(s, p, missing))
		case len(missing) > 0:
			refused = append(refused, lack(s, p, missing))
		case len(tolerated) > 0:
			retained = append(retained, lack(s, p, tolerated))
		}
	}
	remedy := "add the port there, or remove it from spec.vipService.ports"
	if allOf(s.spec) {
		remedy = "remove the list, or name ports in spec.vipService.ports"
	}
	switch {
	case len(refused) > 0:
		c.Reason, c.Message = meta.ReasonPortsNotAllowed, fmt.Sprintf("%s is not hosted where a port is missing: %s; %s", s.serviceName(), compose.List(refused...), remedy)
	case len(unchanged) > 0:
		c.Reason, c.Message = meta.ReasonPortsNotAllowed, fmt.Sprintf("%s stays as it was where a port is missing: %s; %s", s.serviceName(), compose.List(unchanged...), remedy)
	case len(retained) > 0:
		c.Reason, c.Message = meta.ReasonPortsKept, fmt.Sprintf("%s is hosted where a port is missing, until the list changes: %s; %s", s.serviceName(), compose.List(retained...), remedy)
	case s.facts.conditions[meta.TypePortsAllowed]:
		c.Status, c.Reason = compose.True, meta.ReasonPortsAllowed
		c.Message = fmt.Sprintf("The selected TailscaleEndpoints allow all ports of %s", s.serviceName())
	default:
		return nil
	}
	return c
}

// lack describes the list that lacks ports, for a message.
func lack(s *service, p tailnetv1alpha1.ProxySet, ports []int32) string {
	field := fmt.Sprintf("spec.ports of TailscaleEndpoints %s", p.Spec.Endpoints)
	if s.sel.provision && p.Spec.Endpoints == provisionedName(s.owner) {
		field = "spec.endpointTemplate.ports"
	}
	if slices.Contains(ports, portAll) {
		return fmt.Sprintf("%s lists single ports, and the service has all", field)
	}
	names := make([]string, len(ports))
	for i, port := range ports {
		names[i] = string(tailnetv1alpha1.ServicePortOf(port))
	}
	return fmt.Sprintf("%s lacks %s", field, compose.List(names...))
}
