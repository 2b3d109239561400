// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package succession decides which endpoints of a Tailscale Service stay until others have taken over.
package succession

import (
	"slices"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/grants"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/presence"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/selection"
)

// PrefixOwn starts the resource names of the ServiceAttachments by which endpoints host this cluster's
// separate service, in addition to a shared one. The name of the endpoints follows.
const PrefixOwn = "own-"

// Facts are what a succession follows from.
type Facts struct {
	Selection   selection.Selection
	Presence    presence.Presence
	Permissions grants.Permissions

	// Tailnet is the desired tailnet of the service.
	Tailnet string

	// Endpoints are the observed ones of the template. They are nil if there are none.
	Endpoints *gatewayv1alpha1.TailscaleEndpoints

	// TemplateUsers are the attachments to those. They are read only if NeedsTemplateUsers is true.
	TemplateUsers      []tailnetv1alpha1.ServiceAttachment
	TemplateUsersKnown bool
}

// A Succession lists the endpoints that stay until others have taken over.
type Succession struct {
	Facts

	// takenOver means that selected endpoints that allow all its ports host the service, which has a
	// primary host.
	takenOver bool

	// Staying are endpoints that serve the service until a selected one hosts it.
	Staying []tailnetv1alpha1.ProxySet

	// keepTemplate means that the endpoints of the template stay although others are selected:
	// until one of those hosts the service, and while another service uses them.
	keepTemplate bool
}

// Succeed returns the endpoints that stay.
func Succeed(f Facts) Succession {
	out := Succession{Facts: f, takenOver: f.hasTakenOver()}
	// A condition reports the invalid selector.
	if len(f.Selection.Selected) == 0 && !f.Selection.Provision {
		return out
	}
	out.keepTemplate = out.supersedes()
	if !out.takenOver {
		out.Staying = f.served()
	}
	if out.NeedsTemplateUsers() {
		out.keepTemplate = !f.TemplateUsersKnown || slices.ContainsFunc(f.TemplateUsers, func(a tailnetv1alpha1.ServiceAttachment) bool {
			return a.GetDeletionTimestamp() == nil && a.Spec.Services != f.Selection.Owner.Name
		})
	}
	return out
}

// supersedes reports whether selected endpoints are about to replace those of the template.
func (s Succession) supersedes() bool { return len(s.Selection.Superseded) > 0 && !s.takenOver }

// NeedsTemplateUsers reports whether the endpoints of the template stay only as long as another
// service uses them.
func (s Succession) NeedsTemplateUsers() bool {
	return len(s.Selection.Selected) > 0 && !s.Selection.Provision && s.Endpoints != nil && s.Selection.Spec.EndpointTemplate != nil && !s.supersedes()
}

// hasTakenOver reports whether selected endpoints that allow all its ports host the service, which has
// a primary host.
func (f Facts) hasTakenOver() bool {
	return !f.Presence.IsUnrouted() && slices.ContainsFunc(f.Selection.Selected, func(p tailnetv1alpha1.ProxySet) bool {
		return f.Selection.AllowsAll(p) && slices.ContainsFunc(f.Presence.Hosts(), func(h tailnetv1alpha1.ServiceHost) bool { return h.Serves() && presence.IsMachine(p, h) })
	})
}

// served returns the endpoints in the service's tailnet, by name, that serve it and are no longer
// selected. A service that has to move to another tailnet cannot be served in both.
func (f Facts) served() []tailnetv1alpha1.ProxySet {
	var out []tailnetv1alpha1.ProxySet
	for _, p := range f.Selection.Sets {
		a := f.Selection.Attachments[selection.PrefixAttachment+p.Spec.Endpoints]
		selected := slices.ContainsFunc(f.Selection.Selected, func(o tailnetv1alpha1.ProxySet) bool { return o.Spec.Endpoints == p.Spec.Endpoints })
		if selected || !HasAddresses(a) || !selection.HasIngress(p) || p.GetDeletionTimestamp() != nil || p.Spec.Tailnet != f.Tailnet {
			continue
		}
		out = append(out, p)
	}
	slices.SortFunc(out, selection.ByName)
	return out
}

// KeepsTemplate reports whether the endpoints of the template stay although others are selected.
func (s Succession) KeepsTemplate() bool {
	t := s.Selection.Spec.EndpointTemplate
	return s.keepTemplate && t != nil && t.Tailnet == s.Tailnet
}

// AttachmentsBefore returns the names of the attachments by which endpoints that do not allow all ports of
// the spec host the service at ports that they allow. These stay unchanged until others have taken over.
func (s Succession) AttachmentsBefore(p tailnetv1alpha1.ProxySet) []string {
	if s.takenOver {
		return nil
	}
	return slices.DeleteFunc([]string{selection.PrefixAttachment + p.Spec.Endpoints, PrefixOwn + p.Spec.Endpoints}, func(name string) bool {
		a := s.Selection.Attachments[name]
		return a == nil || !s.KeepsAttachment(a)
	})
}

// HostsBefore reports whether endpoints that do not allow all ports of the spec continue to host the
// service at its ports from before.
func (s Succession) HostsBefore(p tailnetv1alpha1.ProxySet) bool {
	return selection.HasIngress(p) && !s.Selection.AllowsAll(p) && len(s.AttachmentsBefore(p)) > 0
}

// IsBarred reports whether selected endpoints have ingress proxies, and no longer or never host the
// service because of its ports.
func (s Succession) IsBarred(p tailnetv1alpha1.ProxySet) bool {
	return selection.HasIngress(p) && !s.Selection.AllowsAll(p) && !s.HostsBefore(p)
}

// KeepsAttachment reports whether no host of an attachment is denied to proxies, nor one of its ports.
func (f Facts) KeepsAttachment(a *tailnetv1alpha1.ServiceAttachment) bool {
	return f.Selection.MayServeAttachment(a) && !slices.ContainsFunc(grants.HostsOf(a.Spec), func(host string) bool { return f.Permissions.Host(host) == grants.Denied })
}

// Forbidden returns the resource names of existing attachments with a host that proxies may not
// connect to, or a port that they may not serve, sorted.
func (f Facts) Forbidden() []string {
	var out []string
	for name, a := range f.Selection.Attachments {
		if !f.KeepsAttachment(a) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// HasAddresses reports whether an attachment is served.
func HasAddresses(a *tailnetv1alpha1.ServiceAttachment) bool {
	return a != nil && len(a.Spec.Addresses) > 0
}
