// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleservices

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
	"github.com/tailscale-gateway/tailscale-gateway/internal/selector"
)

// A selection is the endpoints that host a service.
type selection struct {
	// sets are the selected endpoints, by name.
	sets []tailnetv1alpha1.ProxySet

	// provision means that the endpoints of the template are wanted.
	provision bool

	// superseded are the endpoints of the template that others replace. They stay until one of the
	// others hosts the service.
	superseded []tailnetv1alpha1.ProxySet

	// err is the error in the selector or the template. It is for the user.
	err error
}

// selectEndpoints returns the endpoints that the selector matches. Endpoints from a template count
// only for their own service, and only while no others match. Endpoints from another service's
// template never prevent this service from having its own: otherwise two services with one selector
// would alternate.
func selectEndpoints(f facts) selection {
	owner, spec := f.owner, f.spec
	matching, err := selector.Of(&spec.Selector)
	if err != nil {
		return selection{err: err}
	}
	template := spec.EndpointTemplate

	var own, others []tailnetv1alpha1.ProxySet
	for _, s := range f.sets {
		mine := s.Spec.Endpoints == provisionedName(owner) && s.Labels[meta.LabelServices] == owner.Name
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
	slices.SortFunc(others, byName)

	if template == nil || slices.ContainsFunc(others, func(p tailnetv1alpha1.ProxySet) bool { return hasMachines(p) && f.allowsAll(p) }) {
		return selection{sets: others, superseded: own}
	}
	if !matching.Matches(labels.Set(provisionedLabels(owner, spec))) {
		return selection{err: errTemplateLabels}
	}
	// Endpoints that cannot host, such as those for egress or for other ports, replace no others.
	for _, s := range others {
		if s.Spec.Tailnet == template.Tailnet {
			own = append(own, s)
		}
	}
	return selection{sets: own, provision: true}
}

// hasMachines reports whether endpoints have machines that can host services, or will have some.
func hasMachines(p tailnetv1alpha1.ProxySet) bool { return machines(p) > 0 || p.Spec.IngressOnRequest }

// byName compares ProxySets by name.
func byName(a, b tailnetv1alpha1.ProxySet) int { return strings.Compare(a.GetName(), b.GetName()) }

// provisionedName returns the name of the endpoints made from a service's template.
func provisionedName(owner compose.Owner) string {
	return names.Child(owner.Name, "endpoints")
}

// provisionedLabels returns the labels of endpoints made from a service's template: those of the
// template, of the selector, and of the function.
func provisionedLabels(owner compose.Owner, spec gatewayv1alpha1.TailscaleServicesSpec) map[string]string {
	l := map[string]string{}
	maps.Copy(l, spec.EndpointTemplate.Labels)
	maps.Copy(l, spec.Selector.MatchLabels)
	l[meta.LabelAutoProvisioned] = "true"
	l[meta.LabelServices] = owner.Name
	return l
}

// provisioned reports whether endpoints match the template. A TailscaleEndpoints cannot change its
// tailnet, so endpoints in another tailnet must be deleted first.
func provisioned(e *gatewayv1alpha1.TailscaleEndpoints, t *gatewayv1alpha1.EndpointTemplate) bool {
	return e == nil || e.Spec.Tailnet == t.Tailnet
}

// tailnets returns the tailnets of the selected endpoints, or of the template, without duplicates.
func (s selection) tailnets(template *gatewayv1alpha1.EndpointTemplate) []string {
	var out []string
	for _, p := range s.sets {
		out = append(out, p.Spec.Tailnet)
	}
	if s.provision {
		out = append(out, template.Tailnet)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// provisioned reports whether the endpoints of the template are among the selected ones.
func (s selection) provisioned(owner compose.Owner) bool {
	return slices.ContainsFunc(s.sets, func(p tailnetv1alpha1.ProxySet) bool { return p.Spec.Endpoints == provisionedName(owner) })
}

// hosting returns the selected endpoints, or those of the template before they have a ProxySet.
func (s selection) hosting(owner compose.Owner, template *gatewayv1alpha1.EndpointTemplate) []tailnetv1alpha1.ProxySet {
	if !s.provision || s.provisioned(owner) ||
		template.Proxy.ConnectionType == gatewayv1alpha1.ConnectionTypeEgress {
		return s.sets
	}
	return append(slices.Clone(s.sets), tailnetv1alpha1.ProxySet{Spec: tailnetv1alpha1.ProxySetSpec{
		Endpoints: provisionedName(owner),
		Tailnet:   template.Tailnet,
		Sets:      []tailnetv1alpha1.ProxySetMember{{Direction: tailnetv1alpha1.DirectionIngress}},

		IngressPorts: compose.IngressPorts(template.Ports),
	}})
}

// tags returns the tags of the endpoints' machines, without duplicates.
func tags(sets []tailnetv1alpha1.ProxySet) []tailnetv1alpha1.Tag {
	lists := make([][]tailnetv1alpha1.Tag, 0, len(sets))
	for _, p := range sets {
		lists = append(lists, p.Spec.Tags)
	}
	return compose.Tags(lists...)
}

// machines returns the desired number of ingress machines of endpoints.
func machines(p tailnetv1alpha1.ProxySet) int32 {
	n := int32(0)
	for _, m := range p.Spec.Sets {
		if m.Direction == tailnetv1alpha1.DirectionIngress {
			n += m.Replicas
		}
	}
	return n
}

// hasIngress reports whether endpoints have proxies that can host services, or will have some once
// there is an attachment.
func hasIngress(p tailnetv1alpha1.ProxySet) bool {
	return hasDirection(p, tailnetv1alpha1.DirectionIngress) || p.Spec.IngressOnRequest
}

// hasDirection reports whether endpoints have proxies for a direction.
func hasDirection(p tailnetv1alpha1.ProxySet, d tailnetv1alpha1.Direction) bool {
	return slices.ContainsFunc(p.Spec.Sets, func(m tailnetv1alpha1.ProxySetMember) bool { return m.Direction == d })
}
