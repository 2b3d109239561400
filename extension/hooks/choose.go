// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"reflect"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

// A Reason explains why a rule with a Tailscale backend stays as Envoy Gateway made it.
type Reason string

// Reasons to skip a rule. Its requests then fail with 503, or go to its other backends.
const (
	// Stale rules have matches or backends in the message that differ from the snapshot's route.
	// One of the two lags behind, and another translation follows.
	Stale Reason = "Stale"
	// Unresolved rules name only backends that are unknown or not permitted.
	Unresolved Reason = "Unresolved"
	// Unsupported rules need one cluster for all backends, and only Envoy Gateway knows the
	// endpoints of some.
	Unsupported Reason = "Unsupported"
	// Patched rules send requests to a cluster that neither Envoy Gateway nor the extension makes
	// for them.
	Patched Reason = "Patched"
	// Malformed rules have a cluster that cannot be read, or that Envoy would refuse.
	Malformed Reason = "Malformed"
)

// An outcome describes how a rule's backends become clusters.
type outcome int

const (
	// single rules send all requests to one Tailscale backend.
	single outcome = iota
	// swapped rules have one cluster, and the extension serves all of its endpoints. Priorities
	// then count over all backends together: endpoints of priority 1 get requests only when too few
	// endpoints of priority 0, of any backend, are healthy.
	swapped
	// split rules send to several clusters, by weight.
	split
	// mirrored rules have Tailscale backends only as mirrors.
	mirrored
)

// A backendChoice is what a rule needs of the cluster of one of its Tailscale backends.
type backendChoice struct {
	ref    ir.BackendRef
	key    ir.TargetKey
	target *ir.Target

	// template is Envoy Gateway's cluster for the backend, or the one that an earlier run of the
	// hook made of it. Nil if the earlier run left only the shared cluster.
	template *clusterv3.Cluster

	// own is the name of the backend's cluster if it is not shared, and list is the name of its
	// endpoint list. L4 routes keep Envoy Gateway's names: their rules cannot be confused, and a
	// listener that changes its cluster closes connections.
	own, list string

	// pooled reports that the template also holds backends that Envoy Gateway resolves.
	pooled bool

	// mayShare reports that the rule has no settings that prevent a shared cluster.
	mayShare bool

	// tuning of the cluster's endpoint list.
	tuning ir.Tuning
}

// A choice is the result of choose: the outcome of a rule, and what its clusters need.
type choice struct {
	use     *use
	outcome outcome

	parts   []backendChoice
	mirrors []backendChoice

	// total is the weight of the rule's backends, siblings the weight of the backends that Envoy
	// Gateway resolves, and unresolved the weight of the Tailscale backends that cannot be
	// resolved.
	total, siblings, unresolved uint64

	// refused are Envoy Gateway's clusters for references with a filter that is not applied. Their
	// requests are answered 500, because Gateway API forbids to skip a filter. Their weight counts as
	// unresolved.
	refused map[string]bool
}

// choose returns the choice for a rule. Without a choice the rule stays as it is, for the
// returned reason; an empty reason means that the rule sends nothing to Tailscale backends.
func choose(s *ir.Snapshot, clusters map[string]*clusterv3.Cluster, u *use) (*choice, Reason) {
	if u.rule == nil {
		return nil, Stale
	}
	d := &choice{use: u, outcome: mirrored, mirrors: mirrors(s, clusters, u)}
	refs := effective(u.rule)
	ours := 0
	for _, b := range refs {
		d.total += uint64(b.Weight)
		if b.Ours() {
			ours++
			continue
		}
		d.siblings += uint64(b.Weight)
	}
	whole := u.whole(clusters)
	switch {
	case ours == 0 && len(d.mirrors) > 0:
		return d, ""
	case ours == 0 && slices.ContainsFunc(u.rule.Mirrors, ir.BackendRef.Ours):
		return nil, Unresolved
	case ours == 0:
		return nil, ""
	case len(refs) == 1:
		d.outcome = single
	case needsOne(u, whole):
		d.outcome = swapped
		if p, ok := swap(s, u, whole, refs); ok {
			d.parts = []backendChoice{p}
			return d, ""
		}
		if u.key.route.Kind == ir.KindUDPRoute {
			return nil, Unsupported
		}
		// The other backends stay in the clusters that Envoy Gateway made for the rule.
		d.outcome = split
	default:
		d.outcome = split
	}
	d.chooseParts(s, clusters, refs)
	if d.outcome == single && len(d.parts)+len(d.refused) == 0 {
		return nil, Unresolved
	}
	return d, ""
}

// chooseParts adds the choices for the Tailscale backends, each with a cluster.
func (d *choice) chooseParts(s *ir.Snapshot, clusters map[string]*clusterv3.Cluster, refs []ir.BackendRef) {
	d.refused = map[string]bool{}
	d.parts = make([]backendChoice, 0, len(refs))
	for _, b := range refs {
		if b.Ours() && b.Changes != nil && len(b.Changes.Refused) > 0 {
			d.refused[d.use.key.backend(b.Index)] = true
			d.unresolved += uint64(b.Weight)
			continue
		}
		p, ok := chooseBackend(s, clusters, d.use, b)
		switch {
		case ok:
			d.parts = append(d.parts, p)
		case b.Ours():
			d.unresolved += uint64(b.Weight)
		}
	}
}

// whole returns the message's cluster for all backends of the rule.
func (u *use) whole(clusters map[string]*clusterv3.Cluster) *clusterv3.Cluster {
	if c := clusters[u.key.cluster()]; c != nil || !u.key.http() {
		return c
	}
	return clusters[u.route.RuleName(u.index)]
}

// effective returns the backends with a weight above zero.
func effective(r *ir.Rule) []ir.BackendRef {
	out := make([]ir.BackendRef, 0, len(r.Backends))
	for _, b := range r.Backends {
		if b.Weight > 0 {
			out = append(out, b)
		}
	}
	return out
}

// needsOne reports whether all backends of the rule must be in one cluster.
func needsOne(u *use, whole *clusterv3.Cluster) bool {
	return u.rule.Exclusive || u.key.route.Kind == ir.KindUDPRoute || xds.Sticky(whole)
}

// servable reports whether the extension knows the endpoints of all backends: Tailscale backends
// and Services.
func servable(refs []ir.BackendRef) bool {
	for _, b := range refs {
		if b.Kind == ir.BackendOther {
			return false
		}
	}
	return true
}

// swap returns a choice in which the extension serves the endpoints of the rule's one cluster. The
// cluster takes the shape of the targets if they are alike; otherwise it keeps the shape that Envoy
// Gateway gave it. It returns false if one cluster cannot hold all backends: only Envoy Gateway knows
// some endpoints, or which of them speak TLS; some backends have separate filters; or some speak
// TLS or HTTP/2 and the others do not, or with other settings.
func swap(s *ir.Snapshot, u *use, whole *clusterv3.Cluster, refs []ir.BackendRef) (backendChoice, bool) {
	if whole == nil || !servable(refs) {
		return backendChoice{}, false
	}
	p := backendChoice{template: whole, own: u.key.cluster(), list: u.route.RuleName(u.index), key: refs[0].Target(u.key.route.Kind), tuning: tuned(s, u, whole)}
	if u.key.http() {
		p.own = p.list
	}
	if slices.ContainsFunc(refs, func(b ir.BackendRef) bool { return b.Changes != nil }) {
		return backendChoice{}, false
	}
	alike, apart := true, len(whole.GetTransportSocketMatches()) > 0
	for i, b := range refs {
		t := s.Target(b.Target(u.key.route.Kind))
		if b.Ours() && t != nil {
			apart = apart || t.Shape.TLS != nil || t.Shape.RemoteTLS != nil || u.key.http() && !xds.Speaks(whole, t.Shape.HTTP2)
		}
		alike = alike && b.Ours() && t != nil && (i == 0 || reflect.DeepEqual(t.Shape, p.target.Shape))
		p.target = t
	}
	if !alike {
		p.target = nil
	}
	if apart && !alike {
		return backendChoice{}, false
	}
	p.transport()
	return p, true
}

// chooseBackend returns the choice for a backend. False if the backend is not a Tailscale backend, or
// cannot be resolved.
func chooseBackend(s *ir.Snapshot, clusters map[string]*clusterv3.Cluster, u *use, b ir.BackendRef) (backendChoice, bool) {
	if !b.Ours() || !s.Permitted(u.key.route, b) {
		return backendChoice{}, false
	}
	p := backendChoice{ref: b, key: b.Target(u.key.route.Kind)}
	if p.target = s.Target(p.key); p.target == nil || p.target.Missing {
		return backendChoice{}, false
	}
	p.mayShare = !u.rule.Exclusive && b.Changes == nil && !s.Settings().Pinned(u.key.route, u.rule.Name)
	p.own, p.list = s.RouteClusterName(u.key.route, u.rule.Name, p.key), p.key.ClusterName()
	backendCluster, whole := u.key.backend(b.Index), u.key.cluster()
	switch {
	case clusters[backendCluster] != nil:
		p.template = clusters[backendCluster]
	case clusters[whole] != nil:
		p.template = clusters[whole]
		p.pooled = slices.ContainsFunc(u.rule.Backends, func(b ir.BackendRef) bool { return !b.Ours() })
	default:
		p.template = clusters[u.sends(func(c string) bool { return isNth(c, p.own) || isVariant(c, p.key) })]
	}
	if !u.key.http() {
		p.own = backendCluster
		if clusters[backendCluster] == nil && len(effective(u.rule)) == 1 {
			p.own = whole
		}
	}
	if p.template == nil && (!p.mayShare || clusters[p.key.ClusterName()] == nil) {
		return backendChoice{}, false
	}
	p.tuning = tuned(s, u, p.template)
	p.transport()
	return p, true
}

// transport records the TLS that the cluster gets from its target. Without a target, all
// backends of the cluster speak without TLS.
func (p *backendChoice) transport() {
	p.tuning.Transport = ""
	if p.target != nil {
		p.tuning.Transport = p.target.Transport
		p.tuning.PreferLocal = p.tuning.PreferLocal || xds.PrefersZone(&p.target.Shape, p.tuning)
	}
}

// tuned returns the tuning of the endpoint list of a rule's cluster.
func tuned(s *ir.Snapshot, u *use, c *clusterv3.Cluster) ir.Tuning {
	return xds.Tuned(c, s.Settings().Tuning(u.key.route, u.rule.Name))
}

// mirrors returns the choices for the rule's mirrors that are Tailscale backends. Mirrors always share
// a cluster, because Envoy Gateway gives mirror clusters no settings. Envoy Gateway 1.9.1 refuses a
// mirror to kinds of an extension and answers the rule with 500 (processRequestMirrorFilter in its
// internal/gatewayapi/filters.go); such a rule has no route here to change.
func mirrors(s *ir.Snapshot, clusters map[string]*clusterv3.Cluster, u *use) []backendChoice {
	var out []backendChoice
	for _, b := range u.rule.Mirrors {
		if !b.Ours() || !s.Permitted(u.key.route, b) {
			continue
		}
		p := backendChoice{ref: b, key: b.Target(u.key.route.Kind), own: u.key.mirror(b.Index), mayShare: true}
		p.target, p.template = s.Target(p.key), clusters[p.own]
		if p.target == nil || p.target.Missing || p.template == nil && clusters[p.key.ClusterName()] == nil {
			continue
		}
		p.transport()
		out = append(out, p)
	}
	return out
}
