// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleendpoints

import (
	"slices"

	"k8s.io/utils/ptr"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/allow"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
)

// Resource names of the children that exist once, whatever the directions.
const (
	nameProxySet  = "proxyset"
	nameDiscovery = "discovery"
)

// endpoints are derived from the facts about a TailscaleEndpoints. Their methods return the parts
// of a plan.
type endpoints struct {
	facts

	// ingress and egress are the proxies of each direction. A group that is no longer wanted may
	// still have pods.
	ingress, egress *group

	// verdict reports whether the namespace may use the tailnet in the way of the spec.
	verdict compose.TailnetVerdict

	// composed reports whether there are proxies at all.
	composed bool

	// tags are the tags of the proxies, including the tailnet's.
	tags []tailnetv1alpha1.Tag
}

// outline returns the proxies that follow from the spec and the observed children, even if other
// facts are missing.
func outline(f facts) *endpoints {
	e := &endpoints{facts: f}
	e.ingress = newGroup(e, proxy.DirectionIngress)
	e.egress = newGroup(e, proxy.DirectionEgress)
	return e
}

// newEndpoints returns the endpoints of complete facts. If the tailnet no longer exists or its
// selector is invalid, running proxies stay, because their tags are in the ProxySet. If the tailnet
// does not allow the namespace, there are no proxies.
func newEndpoints(f facts) *endpoints {
	e := outline(f)
	e.verdict = f.access
	if f.access.Accepted {
		e.verdict = f.access.Within(e.violations(f.access.Grant)...)
	}
	switch v := e.verdict; {
	case v.Accepted:
		e.composed = true
		e.tags = compose.Tags(f.tailnetTags, compose.Tags(f.spec.Tags))
	case v.Reason == meta.ReasonTailnetNotFound || v.Reason == meta.ReasonInvalidSelector || v.Reason == meta.ReasonNotGranted:
		e.composed = len(f.children) > 0
		e.tags = compose.Tags(f.spec.Tags)
		if f.proxySet != nil {
			e.tags = f.proxySet.Spec.Tags
		}
	}
	return e
}

// groups returns the groups that are wanted or still exist.
func (e *endpoints) groups() []*group {
	return slices.DeleteFunc([]*group{e.ingress, e.egress}, func(g *group) bool { return !g.exists() })
}

// wantedGroups returns the groups that are wanted.
func (e *endpoints) wantedGroups() []*group {
	return slices.DeleteFunc(e.groups(), func(g *group) bool { return !g.wants })
}

// violations returns how the spec violates the namespace's grant. Elements without a violation are
// nil.
func (e *endpoints) violations(g *allow.Grant) []*allow.ViolationError {
	out := []*allow.ViolationError{
		g.Kind("spec.tailnet", tailnetv1alpha1.MachineKind),
		allow.Tags(g, "spec.tags", e.spec.Tags),
		g.Pods("spec.proxy", e.spec.Proxy.PodSettings),
	}
	if e.spec.AutoDiscovery != nil {
		out = append(out, g.Kind("spec.autoDiscovery", tailnetv1alpha1.DiscoveryKind))
	}
	return out
}

// replicas returns the number of replicas of each group.
func (e *endpoints) replicas() int32 { return ptr.Deref(e.spec.Proxy.Replicas, defaultReplicas) }

// kernel reports whether the proxies use the kernel's networking.
func (e *endpoints) kernel() bool {
	return e.spec.Proxy.Networking == tailnetv1alpha1.NetworkingKernel
}
