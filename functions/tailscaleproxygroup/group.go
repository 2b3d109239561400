// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleproxygroup

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

const (
	// prefixEndpoints starts the resource names of children. A tailnet follows,
	// and after a slash, which no name of a tailnet has, a zone.
	prefixEndpoints = "endpoints-"

	// defaultReplicas is the schema's default, for who calls the function without
	// it.
	defaultReplicas = 2
)

// A group is what is wanted of a TailscaleProxyGroup, and what was seen.
type group struct {
	owner compose.Owner
	xr    *gatewayv1alpha1.TailscaleProxyGroup

	// members that are wanted, by tailnet and zone.
	members []*member

	// leaving are those that were observed and are not wanted any more, by
	// tailnet and zone.
	leaving []*member
}

// A member is one TailscaleEndpoints of a group.
type member struct {
	tailnet string

	// zone that it is pinned to. Empty if it is in none.
	zone string

	// name of the TailscaleEndpoints.
	name string

	// replicas of each direction.
	replicas int32

	// follows reports that replicas are those of the group, not the tailnet's own.
	follows bool

	// devices that are wanted, of all directions.
	devices int32

	// observed TailscaleEndpoints. Nil when there is none.
	observed *gatewayv1alpha1.TailscaleEndpoints
}

func newGroup(owner compose.Owner, xr *gatewayv1alpha1.TailscaleProxyGroup) *group {
	g := &group{owner: owner, xr: xr}
	zones := xr.Spec.Zones
	if len(zones) == 0 {
		zones = []gatewayv1alpha1.Zone{""}
	}
	for _, t := range xr.Spec.Tailnets {
		for _, z := range zones {
			g.members = append(g.members, g.newMember(t, string(z)))
		}
	}
	slices.SortFunc(g.members, byTailnet)
	return g
}

func (g *group) newMember(t gatewayv1alpha1.ProxyGroupTailnet, zone string) *member {
	m := &member{tailnet: t.Name, zone: zone, replicas: ptr.Deref(g.xr.Spec.Replicas, defaultReplicas), follows: t.Replicas == nil}
	m.name = compose.ChildName(g.owner.Name, t.Name)
	if zone != "" {
		// The slash brings a hash into the name: else zone b of tailnet a, and
		// tailnet b of a group that is called like this one and a, would meet.
		m.name = compose.ChildName(g.owner.Name, t.Name+"/"+zone)
	}
	if t.Replicas != nil {
		m.replicas = *t.Replicas
	}
	m.devices = m.replicas
	if g.xr.Spec.Type == gatewayv1alpha1.ConnectionTypeBidirectional {
		m.devices *= 2
	}
	return m
}

func byTailnet(a, b *member) int {
	return cmp.Or(cmp.Compare(a.tailnet, b.tailnet), cmp.Compare(a.zone, b.zone))
}

func (m *member) key() string {
	if m.zone == "" {
		return prefixEndpoints + m.tailnet
	}
	return prefixEndpoints + m.tailnet + "/" + m.zone
}

func (g *group) observe(r *compose.Run) error {
	wanted := map[string]*member{}
	for _, m := range g.members {
		wanted[m.key()] = m
	}
	for _, name := range r.ObservedNames() {
		at, ok := strings.CutPrefix(name, prefixEndpoints)
		if !ok {
			continue
		}
		e := &gatewayv1alpha1.TailscaleEndpoints{}
		if _, err := r.Observed(name, e); err != nil {
			return err
		}
		m := wanted[name]
		if m == nil {
			m = &member{name: e.GetName()}
			m.tailnet, m.zone, _ = strings.Cut(at, "/")
			g.leaving = append(g.leaving, m)
		}
		m.observed = e
	}
	slices.SortFunc(g.leaving, byTailnet)
	return nil
}

// checkInput for what the API server checks of a TailscaleProxyGroup.
func (g *group) checkInput() error {
	for _, m := range slices.Concat(g.members, g.leaving) {
		if m.observed == nil {
			continue
		}
		if old := m.observed.Spec.Proxy.ConnectionType; old != g.xr.Spec.Type {
			return errors.Errorf("cannot turn proxies of type %s into %s: spec.type of the input is immutable; give the step another name", old, g.xr.Spec.Type)
		}
	}
	return nil
}

// endpoints of the member, as they are observed.
func (m *member) endpoints() compose.Endpoints {
	return compose.Endpoints{Observed: m.observed, Devices: m.devices}
}

// labels of every TailscaleEndpoints of the group. Those of the user come first;
// our own win.
func (g *group) labels() map[string]string {
	l := map[string]string{}
	for k, v := range g.xr.Spec.Template.Labels {
		l[k] = string(v)
	}
	maps.Copy(l, map[string]string{meta.LabelProxyGroup: g.owner.Name})
	return l
}
