// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleservices

import (
	"slices"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// requireTemplateUsers is every attachment to the endpoints made from a service's template.
func requireTemplateUsers(owner compose.Owner) compose.Requirement {
	return compose.Requirement{
		Key:        "template-users",
		APIVersion: tailnetv1alpha1.SchemeGroupVersion.String(),
		Kind:       tailnetv1alpha1.ServiceAttachmentKind,
		Namespace:  owner.Namespace,
		Labels:     map[string]string{meta.LabelEndpoints: provisionedName(owner)},
	}
}

// readSuccession finds out which endpoints must go on until others have taken over: those
// that serve the service while none of the selected ones hosts it yet, and those of the
// template also while another service relies on them.
func (s *service) readSuccession(r *compose.Run, all []tailnetv1alpha1.ProxySet) error {
	// What is wrong with a selector is the condition's to say.
	if len(s.sel.sets) == 0 && !s.sel.provision {
		return nil
	}
	if !s.taken() {
		s.staying = s.served(all)
		s.keepTemplate = len(s.sel.superseded) > 0
	}
	if s.sel.provision || s.endpoints == nil || s.xr.Spec.EndpointTemplate == nil || s.keepTemplate {
		return nil
	}
	need := requireTemplateUsers(s.owner)
	r.Require(need)
	users, resolved, err := compose.Required[tailnetv1alpha1.ServiceAttachment](r, need)
	if err != nil {
		return err
	}
	s.keepTemplate = !resolved || slices.ContainsFunc(users, func(a tailnetv1alpha1.ServiceAttachment) bool {
		return a.GetDeletionTimestamp() == nil && a.Spec.Services != s.owner.Name
	})
	return nil
}

// taken reports whether a selected endpoints hosts the service.
func (s *service) taken() bool {
	return slices.ContainsFunc(s.sel.sets, func(p tailnetv1alpha1.ProxySet) bool {
		return slices.ContainsFunc(s.hosts(), func(h tailnetv1alpha1.ServiceHost) bool { return isHealthy(h) && hosts(p, h) })
	})
}

// served are the endpoints in the service's tailnet, by name, that serve it and are not
// selected any more. A service that is in another tailnet than it is to be in cannot be
// served there meanwhile: it is one.
func (s *service) served(all []tailnetv1alpha1.ProxySet) []tailnetv1alpha1.ProxySet {
	var out []tailnetv1alpha1.ProxySet
	for _, p := range all {
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

// keepsTemplate reports whether the endpoints of the template stay though others are
// selected.
func (s *service) keepsTemplate(t *gatewayv1alpha1.EndpointTemplate) bool {
	return s.keepTemplate && t != nil && t.Tailnet == s.tailnet()
}
