// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package selection selects the endpoints that host a Tailscale Service, and judges which of them may.
package selection

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
	"github.com/tailscale-gateway/tailscale-gateway/internal/selector"
)

// PrefixAttachment starts the resource names of the ServiceAttachments by which endpoints host the
// service. The name of the endpoints follows.
const PrefixAttachment = "attachment-"

// errTemplateLabels is a message for the user.
var errTemplateLabels = errors.New("endpointTemplate.labels and selector.matchLabels do not satisfy selector.matchExpressions; add labels that do")

// Facts are what a selection follows from.
type Facts struct {
	Owner compose.Owner
	Spec  gatewayv1alpha1.TailscaleServicesSpec

	// Sets are the ProxySets of the namespace.
	Sets []tailnetv1alpha1.ProxySet

	// Attachments are the existing ones, by resource name.
	Attachments map[string]*tailnetv1alpha1.ServiceAttachment
}

// A Selection is the endpoints that host a service.
type Selection struct {
	Facts

	// Selected are the selected endpoints, by name.
	Selected []tailnetv1alpha1.ProxySet

	// Provision means that the endpoints of the template are wanted.
	Provision bool

	// Superseded are the endpoints of the template that others replace. They stay until one of the
	// others hosts the service.
	Superseded []tailnetv1alpha1.ProxySet

	// Err is the error in the selector or the template. It is for the user.
	Err error
}

// Select returns the endpoints that the selector matches. Endpoints from a template count
// only for their own service, and only while no others match. Endpoints from another service's
// template never prevent this service from having its own: otherwise two services with one selector
// would alternate.
func Select(f Facts) Selection {
	owner, spec := f.Owner, f.Spec
	matching, err := selector.Of(&spec.Selector)
	if err != nil {
		return Selection{Facts: f, Err: err}
	}
	template := spec.EndpointTemplate

	var own, others []tailnetv1alpha1.ProxySet
	for _, s := range f.Sets {
		mine := s.Spec.Endpoints == TemplateName(owner) && s.Labels[meta.LabelServices] == owner.Name
		switch {
		case s.GetDeletionTimestamp() != nil || !matching.Matches(labels.Set(s.GetLabels())):
		case mine && template != nil && s.Spec.Tailnet == template.Tailnet:
			own = append(own, s)
		case mine:
			// They are about to be deleted: the template was removed or names another tailnet.
		case template == nil || s.Labels[meta.LabelAutoProvisioned] != "true":
			others = append(others, s)
		}
	}
	slices.SortFunc(others, ByName)

	if template == nil || slices.ContainsFunc(others, func(p tailnetv1alpha1.ProxySet) bool { return hasMachines(p) && f.AllowsAll(p) }) {
		return Selection{Facts: f, Selected: others, Superseded: own}
	}
	if !matching.Matches(labels.Set(TemplateLabels(owner, spec))) {
		return Selection{Facts: f, Err: errTemplateLabels}
	}
	// Endpoints that cannot host, such as those for egress or for other ports, replace no others.
	for _, s := range others {
		if s.Spec.Tailnet == template.Tailnet {
			own = append(own, s)
		}
	}
	return Selection{Facts: f, Selected: own, Provision: true}
}

// hasMachines reports whether endpoints have machines that can host services, or will have some.
func hasMachines(p tailnetv1alpha1.ProxySet) bool { return Machines(p) > 0 || p.Spec.IngressOnRequest }

// ByName compares ProxySets by name.
func ByName(a, b tailnetv1alpha1.ProxySet) int { return strings.Compare(a.GetName(), b.GetName()) }

// TemplateName returns the name of the endpoints made from a service's template.
func TemplateName(owner compose.Owner) string {
	return names.Child(owner.Name, "endpoints")
}

// TemplateLabels returns the labels of endpoints made from a service's template: those of the
// template, of the selector, and of the function.
func TemplateLabels(owner compose.Owner, spec gatewayv1alpha1.TailscaleServicesSpec) map[string]string {
	l := map[string]string{}
	maps.Copy(l, spec.EndpointTemplate.Labels)
	maps.Copy(l, spec.Selector.MatchLabels)
	l[meta.LabelAutoProvisioned] = "true"
	l[meta.LabelServices] = owner.Name
	return l
}

// MatchesTemplate reports whether endpoints match the template. A TailscaleEndpoints cannot change its
// tailnet, so endpoints in another tailnet must be deleted first.
func MatchesTemplate(e *gatewayv1alpha1.TailscaleEndpoints, t *gatewayv1alpha1.EndpointTemplate) bool {
	return e == nil || e.Spec.Tailnet == t.Tailnet
}

// Tailnets returns the tailnets of the selected endpoints, or of the template, without duplicates.
func (s Selection) Tailnets() []string {
	var out []string
	for _, p := range s.Selected {
		out = append(out, p.Spec.Tailnet)
	}
	if s.Provision {
		out = append(out, s.Spec.EndpointTemplate.Tailnet)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// SeveralTailnets reports whether the selected endpoints are of more than one tailnet.
func (s Selection) SeveralTailnets() bool { return len(s.Tailnets()) > 1 }

// Provisioned reports whether the endpoints of the template are among the selected ones.
func (s Selection) Provisioned() bool {
	return slices.ContainsFunc(s.Selected, func(p tailnetv1alpha1.ProxySet) bool { return p.Spec.Endpoints == TemplateName(s.Owner) })
}

// Hosting returns the selected endpoints, or those of the template before they have a ProxySet.
func (s Selection) Hosting() []tailnetv1alpha1.ProxySet {
	template := s.Spec.EndpointTemplate
	if !s.Provision || s.Provisioned() || template.Proxy.ConnectionType == gatewayv1alpha1.ConnectionTypeEgress {
		return s.Selected
	}
	return append(slices.Clone(s.Selected), tailnetv1alpha1.ProxySet{Spec: tailnetv1alpha1.ProxySetSpec{
		Endpoints: TemplateName(s.Owner),
		Tailnet:   template.Tailnet,
		Sets:      []tailnetv1alpha1.ProxySetMember{{Direction: tailnetv1alpha1.DirectionIngress}},

		IngressPorts: compose.IngressPorts(template.Ports),
	}})
}

// Tags returns the tags of the endpoints' machines, without duplicates.
func Tags(sets []tailnetv1alpha1.ProxySet) []tailnetv1alpha1.Tag {
	lists := make([][]tailnetv1alpha1.Tag, 0, len(sets))
	for _, p := range sets {
		lists = append(lists, p.Spec.Tags)
	}
	return compose.Tags(lists...)
}

// Machines returns the desired number of ingress machines of endpoints.
func Machines(p tailnetv1alpha1.ProxySet) int32 {
	n := int32(0)
	for _, m := range p.Spec.Sets {
		if m.Direction == tailnetv1alpha1.DirectionIngress {
			n += m.Replicas
		}
	}
	return n
}

// HasIngress reports whether endpoints have proxies that can host services, or will have some once
// there is an attachment.
func HasIngress(p tailnetv1alpha1.ProxySet) bool {
	return HasDirection(p, tailnetv1alpha1.DirectionIngress) || p.Spec.IngressOnRequest
}

// HasDirection reports whether endpoints have proxies for a direction.
func HasDirection(p tailnetv1alpha1.ProxySet, d tailnetv1alpha1.Direction) bool {
	return slices.ContainsFunc(p.Spec.Sets, func(m tailnetv1alpha1.ProxySetMember) bool { return m.Direction == d })
}
