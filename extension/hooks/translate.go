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

	// FailingOver counts the clusters of Envoy Gateway that routes use through an aggregate with other
	// clusters.
	FailingOver int

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

// Translate changes resources in place if a rule names a Tailscale backend or fails over, a
// TailscaleRoutePolicy is attached, a TailscaleGateway has a listener with identity headers, or Envoy would refuse a
// route. It changes nothing else, and is pure apart from that: the same snapshot and resources give
// the same bytes, and its own output stays as it is.
func Translate(s *ir.Snapshot, src xds.Source, r Resources) (Resources, Summary) {
	t := &translation{
		snapshot: s,
		source:   src,
		clusters: make(map[string]*clusterv3.Cluster, len(r.Clusters)),
		replaced: map[string]*clusterv3.Cluster{},
		idle:     map[string]bool{},
		joined:   map[string]bool{},
		secrets:  map[string]*tlsv3.Secret{},
		summary:  Summary{Skipped: map[Reason]int{}},
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
	used := collect(s, r)
	if choices := t.choose(used.ours); len(choices) > 0 {
		named := nameClusters(s, src, t.clusters, choices)
		t.replaced, t.secrets, t.summary.Settings = named.own, named.secrets, named.settings
		for i := range named.rules {
			t.apply(&named.rules[i])
		}
		r.Clusters = t.list(r)
	}
	r = t.failOver(r, used.services)
	answerEmpty(r.Routes)
	return t.withSecrets(t.stripIdentityHeaders(t.attachClientCertificates(t.applyPolicies(r)))), t.summary
}

// A translation holds the state of one call of Translate.
type translation struct {
	snapshot *ir.Snapshot
	source   xds.Source

	// clusters of the message, by name.
	clusters map[string]*clusterv3.Cluster

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

// choose returns the choices for all uses that have one.
func (t *translation) choose(us []*use) []*choice {
	out := make([]*choice, 0, len(us))
	for _, u := range us {
		d, reason := choose(t.snapshot, t.clusters, u)
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

// apply changes the message by the plan of a rule.
func (t *translation) apply(r *rulePlan) {
	if r.reason != "" {
		t.skip(r.choice.use, r.reason)
		return
	}
	if err := r.rewrite(); err != nil {
		t.skip(r.choice.use, Malformed)
		return
	}
	for i := range r.backends {
		p := &r.backends[i]
		if p.shared != nil {
			t.replaced[p.cluster] = p.shared
		}
		if name := p.template.GetName(); p.cluster != "" && name != p.cluster && !r.choice.pools(name) {
			t.idle[name] = true
		}
	}
	if r.choice.siblings == 0 && r.choice.outcome == split {
		t.idle[r.choice.use.key.cluster()] = true
	}
	t.summary.Rules++
	if r.choice.outcome == split {
		t.summary.Split++
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
