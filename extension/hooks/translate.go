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

	// Gateways that the resources are for: several if Gateways are merged. If empty, the names of
	// resources identify the Gateway.
	Gateways []types.NamespacedName
}

// A Summary counts the changes of a translation to rules with Tailscale backends.
type Summary struct {
	// Shared and Dedicated count the added clusters, and Removed those that are no longer used.
	Shared, Dedicated, Removed int

	// Rules counts the changed rules, and Split those of them that send to several clusters.
	Rules, Split int

	// Inserted counts the routes that TailscaleRoutePolicies insert before Envoy Gateway's.
	Inserted int

	// Denied counts the routes of Envoy Gateway whose requests are denied, because policies would
	// insert too many routes before them.
	Denied int

	// Skipped counts the rules that stay as Envoy Gateway made them, and SkippedRules lists those
	// of them that are in the snapshot.
	Skipped      map[Reason]int
	SkippedRules []SkippedRule

	// Settings of rules whose clusters differ from their targets' common ones.
	Settings []Settings
}

// A SkippedRule is a rule that stays as Envoy Gateway made it.
type SkippedRule struct {
	Route  ir.RouteKey
	Rule   int
	Reason Reason
}

// Translate changes resources in place if a rule names a Tailscale backend, a TailscaleRoutePolicy
// is attached, a TailscaleGateway has a listener with identity headers, or Envoy would refuse a
// route. It changes nothing else, and is pure apart from that: the same snapshot and resources give
// the same bytes, and its own output stays as it is.
func Translate(s *ir.Snapshot, src xds.Source, r Resources) (Resources, Summary) {
	t := &translation{
		snapshot:       s,
		source:         src,
		clusters:       make(map[string]*clusterv3.Cluster, len(r.Clusters)),
		targetClusters: map[ir.TargetKey]*targetCluster{},
		candidates:     map[candidateKey]*candidate{},
		replaced:       map[string]*clusterv3.Cluster{},
		idle:           map[string]bool{},
		joined:         map[string]bool{},
		secrets:        map[string]*tlsv3.Secret{},
		summary:        Summary{Skipped: map[Reason]int{}},
	}
	for i, c := range r.Clusters {
		// This run decides again whether to withhold the cluster's endpoints.
		r.Clusters[i] = xds.Withheld(c)
	}
	r = t.joinGateways(r)
	for _, c := range r.Clusters {
		if t.clusters[c.GetName()] == nil && c != nil {
			t.clusters[c.GetName()] = c
		}
	}
	if decisions := t.decide(uses(s, r.Listeners, r.Routes)); len(decisions) > 0 {
		t.shareClusters(decisions)
		for _, d := range decisions {
			t.apply(d)
		}
		r.Clusters = t.list(r)
	}
	answerEmpty(r.Routes)
	return t.withSecrets(t.stripIdentityHeaders(t.attachClientCertificates(t.applyPolicies(r)))), t.summary
}

// A translation holds the state of one call of Translate.
type translation struct {
	snapshot *ir.Snapshot
	source   xds.Source

	// clusters of the message, by name.
	clusters map[string]*clusterv3.Cluster

	targetClusters map[ir.TargetKey]*targetCluster
	candidates     map[candidateKey]*candidate

	// replaced and new clusters, by name.
	replaced map[string]*clusterv3.Cluster

	// idle clusters are removed, unless another route uses them.
	idle map[string]bool

	// joined are the clusters that an earlier run copied for Gateways.
	joined map[string]bool

	// secrets that clusters present or trust, by name.
	secrets map[string]*tlsv3.Secret

	summary Summary
}

// decide returns the decisions about all uses.
func (t *translation) decide(us []*use) []*decision {
	out := make([]*decision, 0, len(us))
	for _, u := range us {
		d, reason := decide(t.snapshot, t.clusters, u)
		switch {
		case d != nil:
			out = append(out, d)
		case reason != "":
			t.skip(u, reason)
		}
	}
	return out
}

// skip records that a rule stays as it is.
func (t *translation) skip(u *use, reason Reason) {
	t.summary.Skipped[reason]++
	if u.rule != nil {
		t.summary.SkippedRules = append(t.summary.SkippedRules, SkippedRule{Route: u.key.route, Rule: u.index, Reason: reason})
	}
}

// apply changes the message by a decision.
func (t *translation) apply(d *decision) {
	if reason := d.check(); reason != "" {
		t.skip(d.use, reason)
		return
	}
	if err := t.own(d); err != nil {
		t.skip(d.use, Malformed)
		return
	}
	if err := d.rewrite(); err != nil {
		t.skip(d.use, Malformed)
		return
	}
	for _, p := range slices.Concat(d.parts, d.mirrors) {
		switch common := t.targetCluster(p.key); {
		case p.shared != nil:
			t.replaced[p.cluster] = p.shared
		case p.cluster == p.key.ClusterName() && !common.present:
			t.replaced[p.cluster] = common.chosen.cluster
		}
		if name := p.template.GetName(); p.cluster != "" && name != p.cluster && !d.pools(name) {
			t.idle[name] = true
		}
	}
	if d.siblings == 0 && d.outcome == split {
		t.idle[d.use.key.cluster()] = true
	}
	t.summary.Rules++
	if d.outcome == split {
		t.summary.Split++
	}
}

// own makes the separate clusters of a rule's backends.
func (t *translation) own(d *decision) error {
	clusters := map[*backendPlan]*clusterv3.Cluster{}
	for _, p := range d.parts {
		if p.cluster != p.own {
			continue
		}
		c, err := ownCluster(t.source, p)
		if err != nil {
			return err
		}
		if p.target != nil {
			t.trust(&p.target.Shape)
		}
		clusters[p] = c
	}
	for _, p := range d.parts {
		if c := clusters[p]; c != nil {
			t.place(p, c)
		}
	}
	return nil
}

// place names a cluster among the clusters that a route has for one target. Rules with the same
// settings share one, so that each rule keeps its cluster when others come and go.
func (t *translation) place(p *backendPlan, c *clusterv3.Cluster) {
	for n := 0; ; n++ {
		c.Name = nth(p.own, n)
		existing := t.replaced[c.GetName()]
		if existing != nil && !alike(existing, c) {
			continue
		}
		if existing == nil {
			t.replaced[c.GetName()] = c
		}
		p.cluster = c.GetName()
		return
	}
}

// list returns Envoy Gateway's clusters in their order, without unused ones, followed by the
// extension's clusters by name.
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
			t.summary.Removed++
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
	t.summary.Dedicated++
}
