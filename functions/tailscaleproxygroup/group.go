// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

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

	// follows tells that replicas are those of the group, not the tailnet's own.
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

// complete tells whether an endpoints has exactly the devices that are wanted, and
// all are in the tailnet.
func (m *member) complete() bool {
	return m.observed != nil && len(m.observed.Status.Devices) == int(m.devices) && m.online() == m.devices
}

// settled tells whether an endpoints is complete, and ready in all else.
func (m *member) settled() bool {
	return m.complete() && m.observed.Status.GetCondition(xpv2.TypeReady).Status == corev1.ConditionTrue
}

// online devices of the observed endpoints.
func (m *member) online() int32 {
	n := int32(0)
	if m.observed == nil {
		return n
	}
	for _, d := range m.observed.Status.Devices {
		if d.Online {
			n++
		}
	}
	return n
}

// problem that a person must mend before the endpoints can have its devices.
// Empty if there is none.
func (m *member) problem() string {
	if m.observed == nil {
		return ""
	}
	if c := m.observed.Status.GetCondition(meta.TypeTailnetAccepted); c.Status == corev1.ConditionFalse {
		return c.Message
	}
	if c := m.observed.Status.GetCondition(meta.TypeMachinesReady); c.Status == corev1.ConditionFalse && c.Reason == meta.ReasonCannotPrepareMachine {
		return c.Message
	}
	return ""
}

// starting tells whether an endpoints is still on its way to its first devices.
// One that has lost them is not: it must not keep others from taking its place.
func (m *member) starting() bool {
	return m.observed != nil && m.problem() == "" && len(m.observed.Status.Devices) < int(m.devices)
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
