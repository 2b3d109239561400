// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

// Resources of one translation.
type Resources struct {
	Clusters  []*clusterv3.Cluster
	Listeners []*listenerv3.Listener
	Routes    []*routev3.RouteConfiguration
	Secrets   []*tlsv3.Secret

	// Gateways that they are for: of those that are merged there are several. Without any
	// they are told by names.
	Gateways []types.NamespacedName
}

// A Summary counts what a translation did to rules that name ours.
type Summary struct {
	// Shared and Own are clusters that were made, and Dropped those that nobody
	// uses any more.
	Shared, Own, Dropped int

	// Rules that were changed, and of them those that send to several clusters.
	Rules, Split int

	// Enforced are routes that stand before Envoy Gateway's because of
	// TailscaleRoutePolicies.
	Enforced int

	// Left are rules that stay as Envoy Gateway made them, and LeftRules those of them
	// that the snapshot has.
	Left      map[Reason]int
	LeftRules []LeftRule

	// Settings of rules whose clusters have others than their targets' common ones.
	Settings []Settings
}

// A LeftRule is a rule that stays as Envoy Gateway made it.
type LeftRule struct {
	Route  ir.RouteKey
	Rule   int
	Reason Reason
}

// Translate changes resources in place where a rule names one of our kinds, a
// TailscaleRoutePolicy is attached, a TailscaleGateway has a listener with headers of
// identity, or Envoy would refuse a route, and nothing else. It is pure apart from that:
// the same snapshot and resources give the same bytes, and its own output is left as it is.
func Translate(s *ir.Snapshot, src xds.Source, r Resources) (Resources, Summary) {
	t := &translation{
		snapshot: s,
		source:   src,
		clusters: make(map[string]*clusterv3.Cluster, len(r.Clusters)),
		commons:  map[ir.TargetKey]*common{},
		makings:  map[making]*candidate{},
		replaced: map[string]*clusterv3.Cluster{},
		idle:     map[string]bool{},
		secrets:  map[string]*tlsv3.Secret{},
		summary:  Summary{Left: map[Reason]int{}},
	}
	for i, c := range r.Clusters {
		if was := xds.Withheld(c); was != c {
			// It is judged again.
			c, r.Clusters[i] = was, was
		}
		if t.clusters[c.GetName()] == nil && c != nil {
			t.clusters[c.GetName()] = c
		}
	}
	if decisions := t.decide(uses(s, r.Listeners, r.Routes)); len(decisions) > 0 {
		t.share(decisions)
		for _, d := range decisions {
			t.apply(d)
		}
		r.Clusters = t.list(r)
	}
	answerEmpty(r.Routes)
	return t.withSecrets(t.conceal(t.certify(t.enforce(r)))), t.summary
}

// A translation in the making.
type translation struct {
	snapshot *ir.Snapshot
	source   xds.Source

	// clusters of the message, by name.
	clusters map[string]*clusterv3.Cluster

	commons map[ir.TargetKey]*common
	makings map[making]*candidate

	// replaced and new clusters, by name.
	replaced map[string]*clusterv3.Cluster

	// idle clusters may go, unless something still uses them.
	idle map[string]bool

	// secrets that clusters present, by name.
	secrets map[string]*tlsv3.Secret

	summary Summary
}

// decide about all uses.
func (t *translation) decide(us []*use) []*decision {
	out := make([]*decision, 0, len(us))
	for _, u := range us {
		d, reason := decide(t.snapshot, t.clusters, u)
		switch {
		case d != nil:
			out = append(out, d)
		case reason != "":
			t.leave(u, reason)
		}
	}
	return out
}

// leave a rule as it is.
func (t *translation) leave(u *use, reason Reason) {
	t.summary.Left[reason]++
	if u.rule != nil {
		t.summary.LeftRules = append(t.summary.LeftRules, LeftRule{Route: u.key.route, Rule: u.at, Reason: reason})
	}
}

// apply a decision to the message.
func (t *translation) apply(d *decision) {
	if reason := d.check(); reason != "" {
		t.leave(d.use, reason)
		return
	}
	if err := t.own(d); err != nil {
		t.leave(d.use, Malformed)
		return
	}
	if err := d.rewrite(); err != nil {
		t.leave(d.use, Malformed)
		return
	}
	for _, p := range slices.Concat(d.parts, d.mirrors) {
		switch of := t.common(p.key); {
		case p.shared != nil:
			t.replaced[p.cluster] = p.shared
		case p.cluster == p.key.ClusterName() && !of.present:
			t.replaced[p.cluster] = of.chosen.cluster
		}
		if name := p.template.GetName(); p.cluster != "" && name != p.cluster && !d.pools(name) {
			t.idle[name] = true
		}
	}
	if d.siblings == 0 && d.fate == split {
		t.idle[d.use.key.cluster()] = true
	}
	t.summary.Rules++
	if d.fate == split {
		t.summary.Split++
	}
}

// own makes the clusters that a rule's backends have for themselves.
func (t *translation) own(d *decision) error {
	made := map[*part]*clusterv3.Cluster{}
	for _, p := range d.parts {
		if p.cluster != p.own {
			continue
		}
		c, err := ownCluster(t.source, p)
		if err != nil {
			return err
		}
		made[p] = c
	}
	for _, p := range d.parts {
		if c := made[p]; c != nil {
			t.place(p, c)
		}
	}
	return nil
}

// place a cluster among those that a route has for one target. Rules with the same
// settings have one together, so that it stays theirs whichever of them come and go.
func (t *translation) place(p *part, c *clusterv3.Cluster) {
	for n := 0; ; n++ {
		c.Name = nth(p.own, n)
		was := t.replaced[c.GetName()]
		if was != nil && !alike(was, c) {
			continue
		}
		if was == nil {
			t.replaced[c.GetName()] = c
		}
		p.cluster = c.GetName()
		return
	}
}

// list of clusters: Envoy Gateway's in their order without those that nobody uses
// any more, then ours by name.
func (t *translation) list(r Resources) []*clusterv3.Cluster {
	for name := range referenced(r) {
		delete(t.idle, name)
	}
	out := make([]*clusterv3.Cluster, 0, len(r.Clusters)+len(t.replaced))
	for _, c := range r.Clusters {
		n := t.replaced[c.GetName()]
		switch {
		case n != nil:
			out = append(out, n)
			t.count(n)
			t.replaced[c.GetName()] = nil
		case t.idle[c.GetName()]:
			t.summary.Dropped++
		default:
			out = append(out, c)
		}
	}
	first := len(out)
	for _, c := range t.replaced {
		if c != nil {
			out = append(out, c)
			t.count(c)
		}
	}
	slices.SortFunc(out[first:], func(a, b *clusterv3.Cluster) int { return strings.Compare(a.GetName(), b.GetName()) })
	return out
}

func (t *translation) count(c *clusterv3.Cluster) {
	target, _, _ := strings.Cut(c.GetName(), SettingsSegment)
	if _, err := ir.ParseClusterName(target); err == nil {
		t.summary.Shared++
		return
	}
	t.summary.Own++
}
