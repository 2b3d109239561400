// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"slices"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	rules "github.com/tailscale-gateway/tailscale-gateway/internal/service"
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
//     the list lacks it (package attachments).
//   - A list is not known, because the ProxySet is of an earlier version: it limits nothing.

// mayServe reports whether endpoints allow a port. 0 stands for all ports.
func (f Facts) mayServe(p tailnetv1alpha1.ProxySet, port int32) bool {
	return Allows(p.Spec.IngressPorts, port) || f.keeps(p, port)
}

// Allows reports whether ports allow a port.
func Allows(ports *tailnetv1alpha1.ProxySetPorts, port int32) bool {
	return ports == nil || ports.All || slices.Contains(ports.Allowed, port)
}

// keeps reports whether endpoints host the service at a port, and may continue although they do not
// allow it.
func (f Facts) keeps(p tailnetv1alpha1.ProxySet, port int32) bool {
	a := f.Attachments[PrefixAttachment+p.Spec.Endpoints]
	return p.Spec.IngressPorts != nil && p.Spec.IngressPorts.KeepHosted && a != nil &&
		slices.ContainsFunc(a.Spec.Ports, func(existing tailnetv1alpha1.AttachmentPort) bool { return existing.Port == port })
}

// MayServeAttachment reports whether endpoints allow each port of an existing attachment by which they
// host the service, apart from ports that the spec no longer has, which are served until the tailnet has
// removed them. Endpoints that do not exist refuse nothing.
func (f Facts) MayServeAttachment(a *tailnetv1alpha1.ServiceAttachment) bool {
	i := slices.IndexFunc(f.Sets, func(p tailnetv1alpha1.ProxySet) bool { return p.Spec.Endpoints == a.Spec.Endpoints })
	wanted := f.WantedPorts()
	return i < 0 || a.Spec.Direction != tailnetv1alpha1.DirectionIngress ||
		!slices.ContainsFunc(a.Spec.Ports, func(port tailnetv1alpha1.AttachmentPort) bool {
			return (wanted == nil || slices.Contains(wanted, port.Port)) && !f.mayServe(f.Sets[i], port.Port)
		})
}

// WantedPorts returns the ports of the spec as attachments have them, or nil if the spec is invalid.
func (f Facts) WantedPorts() []int32 {
	if rules.AllPorts(f.Spec) {
		return []int32{rules.PortAll}
	}
	numbers, err := rules.Numbers(f.Spec.VIPService.Ports)
	if err != nil {
		return nil
	}
	return numbers
}

// MissingPorts returns the ports of the service that endpoints do not allow.
func (f Facts) MissingPorts(p tailnetv1alpha1.ProxySet) []int32 {
	return slices.DeleteFunc(f.WantedPorts(), func(port int32) bool { return f.mayServe(p, port) })
}

// AllowsAll reports whether endpoints allow all ports of the service.
func (f Facts) AllowsAll(p tailnetv1alpha1.ProxySet) bool { return len(f.MissingPorts(p)) == 0 }

// mayHost reports whether endpoints have or get ingress proxies, and allow all ports of the service.
func (f Facts) mayHost(p tailnetv1alpha1.ProxySet) bool { return HasIngress(p) && f.AllowsAll(p) }

// NoneAllows reports whether there are selected endpoints with ingress proxies, and none of them allows
// all ports of the service.
func (s Selection) NoneAllows() bool {
	hosting := s.Hosting()
	return slices.ContainsFunc(hosting, HasIngress) && !slices.ContainsFunc(hosting, s.mayHost)
}
