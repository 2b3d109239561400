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

// A Reason says why a rule that names one of ours was left as Envoy Gateway made it.
type Reason string

// Reasons to leave a rule alone. Its requests then fail with 503, or go to what else
// it names.
const (
	// Stale rules have matches in the message that no rule of the snapshot's route has,
	// or other backends: one of the two lags behind, and a new translation follows.
	Stale Reason = "Stale"
	// Unresolved rules name only what is not known, or not permitted.
	Unresolved Reason = "Unresolved"
	// Unsupported rules name, beside ours, backends whose endpoints only Envoy
	// Gateway knows, where one cluster must hold them all.
	Unsupported Reason = "Unsupported"
	// Patched rules send requests to a cluster that neither Envoy Gateway nor we
	// make for them.
	Patched Reason = "Patched"
	// Malformed rules have a cluster that cannot be read, or that Envoy would
	// refuse.
	Malformed Reason = "Malformed"
)

// A fate is what becomes of a rule.
type fate int

const (
	// single rules send all to one backend of ours.
	single fate = iota
	// swapped rules have one cluster, and it gets all endpoints from us. Their
	// priorities then count over all backends together: endpoints of priority 1 get
	// something only when too few of priority 0 are well, whichever backend's.
	swapped
	// split rules send to several clusters, by weight.
	split
	// mirrored rules have backends of others only, and mirrors to ours.
	mirrored
)

// A part is what becomes of one backend of ours.
type part struct {
	ref    ir.BackendRef
	key    ir.TargetKey
	target *ir.Target

	// template is Envoy Gateway's own cluster for it, or what an earlier hook made of
	// that. Nil when it has left the shared one alone.
	template *clusterv3.Cluster

	// own is the name of its cluster if it shares none, and list that of the endpoints.
	// Those of L4 routes are called as Envoy Gateway does: there are no rules to be
	// mistaken for each other, and a listener with another cluster closes connections.
	own, list string

	// pooled is set where the template is for backends of others, too.
	pooled bool

	// mayShare reports that no setting is the rule's own.
	mayShare bool

	// tuning of the cluster's endpoint list.
	tuning ir.Tuning

	// candidate for the target's common cluster. Nil if it may not share one.
	candidate *candidate

	// cluster that it has in the end, and shared that one if it is neither the common
	// one nor its own.
	cluster string
	shared  *clusterv3.Cluster
}

// A decision is what becomes of a rule and its backends.
type decision struct {
	use  *use
	fate fate

	parts   []*part
	mirrors []*part

	// total weight of the rule's backends, the part that is not of our kinds, and
	// the part of those of ours that cannot be resolved.
	total, siblings, unresolved uint64
}

// decide what becomes of a rule. Without a decision the rule stays as it is, for
// that reason; without a reason, because nothing goes to ours.
func decide(s *ir.Snapshot, clusters map[string]*clusterv3.Cluster, u *use) (*decision, Reason) {
	if u.rule == nil {
		return nil, Stale
	}
	d := &decision{use: u, fate: mirrored, mirrors: mirrors(s, clusters, u)}
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
		d.fate = single
	case needsOne(u, whole):
		d.fate = swapped
		if p := swap(s, u, whole, refs); p != nil {
			d.parts = []*part{p}
			return d, ""
		}
		if u.key.route.Kind == ir.KindUDPRoute {
			return nil, Unsupported
		}
		// Those of others stay in Envoy Gateway's cluster, or clusters, of the rule.
		d.fate = split
	default:
		d.fate = split
	}
	for _, b := range refs {
		switch p := newPart(s, clusters, u, b); {
		case p != nil:
			d.parts = append(d.parts, p)
		case b.Ours():
			d.unresolved += uint64(b.Weight)
		}
	}
	if d.fate == single && len(d.parts) == 0 {
		return nil, Unresolved
	}
	return d, ""
}

// whole is the message's cluster for all backends of the rule.
func (u *use) whole(clusters map[string]*clusterv3.Cluster) *clusterv3.Cluster {
	if c := clusters[u.key.cluster()]; c != nil || !u.key.http() {
		return c
	}
	return clusters[u.route.RuleName(u.at)]
}

// effective backends: those that get anything.
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

// servable reports whether we know the endpoints of all: those of our kinds and of
// Services.
func servable(refs []ir.BackendRef) bool {
	for _, b := range refs {
		if b.Kind == ir.BackendOther {
			return false
		}
	}
	return true
}

// swap the source of endpoints of the rule's own cluster. It has the shape of the
// targets if all are alike; else what Envoy Gateway made of the rule counts. Nil if
// one cluster cannot hold them all: of some only Envoy Gateway knows the endpoints, or
// knows which of them speak TLS; some have filters of their own; or some speak TLS or HTTP/2, and others do not or do it in
// another way.
func swap(s *ir.Snapshot, u *use, whole *clusterv3.Cluster, refs []ir.BackendRef) *part {
	if whole == nil || !servable(refs) {
		return nil
	}
	p := &part{template: whole, own: u.key.cluster(), list: u.route.RuleName(u.at), key: refs[0].Target(u.key.route.Kind), tuning: tuned(s, u, whole)}
	if u.key.http() {
		p.own = p.list
	}
	if slices.ContainsFunc(refs, func(b ir.BackendRef) bool { return b.Changes != nil }) {
		return nil
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
		return nil
	}
	return p
}

// newPart for a backend. Nil if it is not of ours, or cannot be resolved.
func newPart(s *ir.Snapshot, clusters map[string]*clusterv3.Cluster, u *use, b ir.BackendRef) *part {
	if !b.Ours() || !s.Permitted(u.key.route, b) {
		return nil
	}
	p := &part{ref: b, key: b.Target(u.key.route.Kind)}
	if p.target = s.Target(p.key); p.target == nil || p.target.Missing {
		return nil
	}
	p.mayShare = !u.rule.Exclusive && b.Changes == nil && !s.Pinned(u.key.route, u.rule.Name)
	p.own, p.list = s.RouteClusterName(u.key.route, u.rule.Name, p.key), p.key.ClusterName()
	each, whole := u.key.backend(b.Index), u.key.cluster()
	switch {
	case clusters[each] != nil:
		p.template = clusters[each]
	case clusters[whole] != nil:
		p.template = clusters[whole]
		p.pooled = slices.ContainsFunc(u.rule.Backends, func(b ir.BackendRef) bool { return !b.Ours() })
	default:
		p.template = clusters[u.sends(func(c string) bool { return isNth(c, p.own) || isVariant(c, p.key) })]
	}
	if !u.key.http() {
		p.own = each
		if clusters[each] == nil && len(effective(u.rule)) == 1 {
			p.own = whole
		}
	}
	if p.template == nil && (!p.mayShare || clusters[p.key.ClusterName()] == nil) {
		return nil
	}
	p.tuning = tuned(s, u, p.template)
	return p
}

// tuned is how the endpoint list of a rule's cluster is to be.
func tuned(s *ir.Snapshot, u *use, c *clusterv3.Cluster) ir.Tuning {
	return xds.Tuned(c, s.Tuning(u.key.route, u.rule.Name))
}

// mirrors of the rule that are of ours. They always share: Envoy Gateway gives their
// clusters no settings. Its 1.9.1 refuses a mirror to kinds of an extension, and
// answers 500 for the rule (processRequestMirrorFilter in its
// internal/gatewayapi/filters.go); such a rule has no route here to change.
func mirrors(s *ir.Snapshot, clusters map[string]*clusterv3.Cluster, u *use) []*part {
	var out []*part
	for _, b := range u.rule.Mirrors {
		if !b.Ours() || !s.Permitted(u.key.route, b) {
			continue
		}
		p := &part{ref: b, key: b.Target(u.key.route.Kind), own: u.key.mirror(b.Index), mayShare: true}
		p.target, p.template = s.Target(p.key), clusters[p.own]
		if p.target == nil || p.target.Missing || p.template == nil && clusters[p.key.ClusterName()] == nil {
			continue
		}
		out = append(out, p)
	}
	return out
}
