// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleservices

import (
	"slices"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// A succession lists the endpoints that stay until others have taken over.
type succession struct {
	// staying are endpoints that serve the service until a selected one hosts it.
	staying []tailnetv1alpha1.ProxySet

	// keepTemplate means that the endpoints of the template stay although others are selected:
	// until one of those hosts the service, and while another service uses them.
	keepTemplate bool
}

// succeed returns the endpoints that stay.
func (s *service) succeed() succession {
	// A condition reports the invalid selector.
	if len(s.sel.sets) == 0 && !s.sel.provision {
		return succession{}
	}
	out := succession{keepTemplate: s.supersedes()}
	if !s.hasTakenOver() {
		out.staying = s.served()
	}
	if s.needsTemplateUsers() {
		out.keepTemplate = !s.templateUsersKnown || slices.ContainsFunc(s.templateUsers, func(a tailnetv1alpha1.ServiceAttachment) bool {
			return a.GetDeletionTimestamp() == nil && a.Spec.Services != s.owner.Name
		})
	}
	return out
}

// supersedes reports whether selected endpoints are about to replace those of the template.
func (s *service) supersedes() bool { return len(s.sel.superseded) > 0 && !s.hasTakenOver() }

// needsTemplateUsers reports whether the endpoints of the template stay only as long as another
// service uses them.
func (s *service) needsTemplateUsers() bool {
	return len(s.sel.sets) > 0 && !s.sel.provision && s.endpoints != nil && s.spec.EndpointTemplate != nil && !s.supersedes()
}

// hasTakenOver reports whether selected endpoints that allow all its ports host the service, which has
// a primary host.
func (s *service) hasTakenOver() bool {
	return !s.isUnrouted() && slices.ContainsFunc(s.sel.sets, func(p tailnetv1alpha1.ProxySet) bool {
		return s.allowsAll(p) && slices.ContainsFunc(s.hosts(), func(h tailnetv1alpha1.ServiceHost) bool { return h.Serves() && hosts(p, h) })
	})
}

// served returns the endpoints in the service's tailnet, by name, that serve it and are no longer
// selected. A service that has to move to another tailnet cannot be served in both.
func (s *service) served() []tailnetv1alpha1.ProxySet {
	var out []tailnetv1alpha1.ProxySet
	for _, p := range s.sets {
		a := s.attachments[prefixAttachment+p.Spec.Endpoints]
		selected := slices.ContainsFunc(s.sel.sets, func(o tailnetv1alpha1.ProxySet) bool { return o.Spec.Endpoints == p.Spec.Endpoints })
		if selected || !hasAddresses(a) || !hasIngress(p) || p.GetDeletionTimestamp() != nil || p.Spec.Tailnet != s.tailnet() {
			continue
		}
		out = append(out, p)
	}
	slices.SortFunc(out, byName)
	return out
}

// keepsTemplate reports whether the endpoints of the template stay although others are selected.
func (s *service) keepsTemplate(t *gatewayv1alpha1.EndpointTemplate) bool {
	return s.keepTemplate && t != nil && t.Tailnet == s.tailnet()
}
