// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleproxygroup

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

const (
	// prefixEndpoints starts the resource names of children. A tailnet follows,
	// and after a slash, which no name of a tailnet has, a zone.
	prefixEndpoints = "endpoints-"

	// defaultReplicas is the schema's default for requests that did not pass the API server.
	defaultReplicas = 2
)

// A group is derived from the facts about a TailscaleProxyGroup.
type group struct {
	facts

	// members are the desired members, by tailnet and zone.
	members []*member

	// leaving are the observed members that are no longer wanted, by tailnet and zone.
	leaving []*member
}

// A member is one TailscaleEndpoints of a group.
type member struct {
	tailnet string

	// zone is the member's zone. It is empty if the member is not pinned to one.
	zone string

	// name is the name of the TailscaleEndpoints.
	name string

	// replicas is the number of replicas of each direction.
	replicas int32

	// follows means that replicas are those of the group, not those of the tailnet.
	follows bool

	// devices is the desired number of devices, of all directions.
	devices int32

	// observed is the observed TailscaleEndpoints, or nil if there is none.
	observed *gatewayv1alpha1.TailscaleEndpoints
}

// newGroup returns the members of the facts' group.
func newGroup(f facts) *group {
	g := &group{facts: f}
	zones := f.spec.Zones
	if len(zones) == 0 {
		zones = []gatewayv1alpha1.Zone{""}
	}
	wanted := map[string]bool{}
	for _, t := range f.spec.Tailnets {
		for _, z := range zones {
			m := f.newMember(t, string(z))
			g.members, wanted[m.key()] = append(g.members, m), true
		}
	}
	for name, e := range f.observed {
		if wanted[name] {
			continue
		}
		tailnet, zone, _ := strings.Cut(strings.TrimPrefix(name, prefixEndpoints), "/")
		g.leaving = append(g.leaving, &member{name: e.GetName(), tailnet: tailnet, zone: zone, observed: e})
	}
	slices.SortFunc(g.members, byTailnet)
	slices.SortFunc(g.leaving, byTailnet)
	return g
}

// newMember returns the member of a tailnet in a zone.
func (f facts) newMember(t gatewayv1alpha1.ProxyGroupTailnet, zone string) *member {
	replicas := ptr.Deref(f.spec.Replicas, defaultReplicas)
	m := &member{
		tailnet: t.Name, zone: zone, name: names.Child(f.owner.Name, t.Name),
		replicas: ptr.Deref(t.Replicas, replicas), follows: t.Replicas == nil,
	}
	if zone != "" {
		// The slash adds a hash to the name: otherwise zone b of tailnet a would have the same name
		// as tailnet b in the group whose name is this group's name and a.
		m.name = names.Child(f.owner.Name, t.Name+"/"+zone)
	}
	m.devices = m.replicas
	if f.spec.Type == gatewayv1alpha1.ConnectionTypeBidirectional {
		m.devices *= 2
	}
	m.observed = f.observed[m.key()]
	return m
}

// byTailnet compares members by tailnet and zone.
func byTailnet(a, b *member) int {
	return cmp.Or(cmp.Compare(a.tailnet, b.tailnet), cmp.Compare(a.zone, b.zone))
}

// key returns the resource name.
func (m *member) key() string {
	if m.zone == "" {
		return prefixEndpoints + m.tailnet
	}
	return prefixEndpoints + m.tailnet + "/" + m.zone
}

// endpoints returns the observed endpoints of the member.
func (m *member) endpoints() compose.Endpoints {
	return compose.Endpoints{Observed: m.observed, Devices: m.devices}
}

// labels returns the labels of every TailscaleEndpoints of the group. The function's labels take
// precedence over the user's.
func (g *group) labels() map[string]string {
	l := map[string]string{}
	for k, v := range g.spec.Template.Labels {
		l[k] = string(v)
	}
	maps.Copy(l, map[string]string{meta.LabelProxyGroup: g.owner.Name})
	return l
}
