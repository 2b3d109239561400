// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package attachments

import (
	"cmp"
	"slices"
	"strings"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/succession"
	rules "github.com/tailscale-gateway/tailscale-gateway/internal/service"
)

// Tailscale accepts a machine as a host of a service only while the machine serves every port that
// the tailnet has for the service. So a port is removed in the tailnet first, and at proxies once
// the provider has observed that: if Tailscale's API is unavailable in between, the proxies would
// lose all ports of the service. A port is added at proxies first: a VIPService asks for it once the
// attachments have it, and the provider adds it once the agents report that they serve it.

// keepPorts adds to an attachment the observed ports that the tailnet still expects hosts of the
// service to serve. An attachment with all ports has no other ports, so it stays unchanged until
// the tailnet follows, as does one that should get all ports.
func keepPorts(want, observed *tailnetv1alpha1.ServiceAttachment, tailnet []string) {
	if observed == nil || want.Spec.ServiceName != observed.Spec.ServiceName {
		return
	}
	var retained []tailnetv1alpha1.AttachmentPort
	for _, p := range observed.Spec.Ports {
		wanted := slices.ContainsFunc(want.Spec.Ports, func(w tailnetv1alpha1.AttachmentPort) bool { return w.Port == p.Port })
		if !wanted && slices.Contains(tailnet, string(tailnetv1alpha1.ServicePortOf(p.Port))) {
			retained = append(retained, p)
		}
	}
	if len(retained) == 0 {
		return
	}
	all := func(p tailnetv1alpha1.AttachmentPort) bool { return p.Port == rules.PortAll }
	if slices.ContainsFunc(retained, all) || slices.ContainsFunc(want.Spec.Ports, all) {
		want.Spec.Ports, want.Spec.DNSName, want.Spec.Authorities = observed.Spec.Ports, observed.Spec.DNSName, observed.Spec.Authorities
		return
	}
	want.Spec.Ports = append(want.Spec.Ports, retained...)
	slices.SortFunc(want.Spec.Ports, func(a, b tailnetv1alpha1.AttachmentPort) int { return cmp.Compare(a.Port, b.Port) })
	keepAuthorities(want, observed)
	if slices.ContainsFunc(retained, func(p tailnetv1alpha1.AttachmentPort) bool { return p.TLS != nil }) {
		want.Spec.DNSName = cmp.Or(want.Spec.DNSName, observed.Spec.DNSName)
	}
}

// PortsForTailnet returns the wanted ports that the tailnet may already have: those that it had
// before, and those that the attachments of all proxies which serve the service have.
// Existing attachments are known by the prefix of their resource names. While there is no such port, the
// earlier ones stay.
func PortsForTailnet(existing map[string]*tailnetv1alpha1.ServiceAttachment, wanted, previous []tailnetv1alpha1.ServicePort, prefix string) []tailnetv1alpha1.ServicePort {
	out := slices.DeleteFunc(slices.Clone(wanted), func(p tailnetv1alpha1.ServicePort) bool {
		return !slices.Contains(previous, p) && lacksPort(existing, p, prefix)
	})
	// Between a list and all ports there is no intermediate step.
	if len(out) == 0 && !slices.Contains(wanted, tailnetv1alpha1.ServicePortAll) && !slices.Contains(previous, tailnetv1alpha1.ServicePortAll) {
		return previous
	}
	if len(out) == 0 {
		return wanted
	}
	return out
}

// lacksPort reports whether proxies serve the service, but not yet at a port.
func lacksPort(existing map[string]*tailnetv1alpha1.ServiceAttachment, port tailnetv1alpha1.ServicePort, prefix string) bool {
	for name, a := range existing {
		if !strings.HasPrefix(name, prefix) || !succession.HasAddresses(a) {
			continue
		}
		if !slices.ContainsFunc(a.Spec.Ports, func(p tailnetv1alpha1.AttachmentPort) bool { return tailnetv1alpha1.ServicePortOf(p.Port) == port }) {
			return true
		}
	}
	return false
}

// keepAuthorities adds to an attachment the observed authorities that its ports name and that it lacks,
// because they are those of a kept port.
func keepAuthorities(want, observed *tailnetv1alpha1.ServiceAttachment) {
	for _, p := range want.Spec.Ports {
		for _, b := range p.Backends {
			if b.TLS == nil {
				continue
			}
			named := func(a tailnetv1alpha1.AttachmentAuthorities) bool { return a.Name == b.TLS.Authorities }
			i := slices.IndexFunc(observed.Spec.Authorities, named)
			if i >= 0 && !slices.ContainsFunc(want.Spec.Authorities, named) {
				want.Spec.Authorities = append(want.Spec.Authorities, observed.Spec.Authorities[i])
			}
		}
	}
	slices.SortFunc(want.Spec.Authorities, func(a, b tailnetv1alpha1.AttachmentAuthorities) int { return cmp.Compare(a.Name, b.Name) })
}
