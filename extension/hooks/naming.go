// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

// A backendPlan is the choice for one Tailscale backend of a rule, with the cluster that it gets.
type backendPlan struct {
	*backendChoice

	// candidate for the target's cluster. Nil if the backend may not share one.
	candidate *candidate

	// cluster is the name of the final cluster. shared is that cluster if it is neither in the
	// message nor the backend's own.
	cluster string
	shared  *clusterv3.Cluster
}

// A rulePlan is the choice for a rule, with the clusters of its backends.
type rulePlan struct {
	choice *choice

	// reason why the rule stays as it is nevertheless.
	reason Reason

	// backends are the plans of parts, followed by those of mirrors.
	backends, parts, mirrors []backendPlan
}

// A naming is the result of nameClusters: the clusters of all rules.
type naming struct {
	// rules are in the order of the choices.
	rules []rulePlan

	// own are the clusters that rules do not share, by name.
	own map[string]*clusterv3.Cluster

	// secrets have the authorities that clusters trust, by name.
	secrets map[string]*tlsv3.Secret

	// settings of rules whose clusters differ from their targets' common ones.
	settings []Settings
}

// A namer holds the state of one call of nameClusters.
type namer struct {
	snapshot *ir.Snapshot
	source   xds.Source

	// clusters of the message, by name.
	clusters map[string]*clusterv3.Cluster

	// uses counts the backends of all rules that use a target.
	uses map[ir.TargetKey]int

	targetClusters map[ir.TargetKey]*targetCluster
	candidates     map[candidateKey]*candidate

	naming
}

// nameClusters collects the candidates of all choices, selects one for each target, and gives each
// backend its cluster. It changes neither the message nor the choices.
func nameClusters(s *ir.Snapshot, src xds.Source, clusters map[string]*clusterv3.Cluster, choices []*choice) naming {
	n := &namer{
		snapshot: s, source: src, clusters: clusters, uses: map[ir.TargetKey]int{},
		targetClusters: map[ir.TargetKey]*targetCluster{}, candidates: map[candidateKey]*candidate{},
		naming: naming{rules: newRulePlans(choices), own: map[string]*clusterv3.Cluster{}, secrets: map[string]*tlsv3.Secret{}},
	}
	for i := range n.rules {
		for j := range n.rules[i].backends {
			n.uses[n.rules[i].backends[j].key]++
		}
	}
	for i := range n.rules {
		n.offerAll(&n.rules[i])
	}
	for i := range n.rules {
		n.assignAll(&n.rules[i])
	}
	for i := range n.rules {
		r := &n.rules[i]
		if r.reason = r.choice.check(); r.reason != "" {
			continue
		}
		if err := n.addOwn(r); err != nil {
			r.reason = Malformed
		}
	}
	return n.naming
}

// newRulePlans returns the plans of choices, without clusters.
func newRulePlans(choices []*choice) []rulePlan {
	count := 0
	for _, d := range choices {
		count += len(d.parts) + len(d.mirrors)
	}
	all := make([]backendPlan, 0, count)
	out := make([]rulePlan, 0, len(choices))
	for _, d := range choices {
		first := len(all)
		for i := range d.parts {
			all = append(all, backendPlan{backendChoice: &d.parts[i]})
		}
		for i := range d.mirrors {
			all = append(all, backendPlan{backendChoice: &d.mirrors[i]})
		}
		backends := all[first:]
		out = append(out, rulePlan{choice: d, backends: backends, parts: backends[:len(d.parts)], mirrors: backends[len(d.parts):]})
	}
	return out
}

// offerAll offers the candidates of a rule to the targets of its backends.
func (n *namer) offerAll(r *rulePlan) {
	u := r.choice.use
	prec := precedence{rank: rankGateway, created: u.route.Info.Created, rule: u.key}
	if slices.ContainsFunc(u.policies, func(p types.NamespacedName) bool { return !n.snapshot.Settings().HasGatewayPolicy(u.key.route, p) }) {
		prec.rank = rankNarrow
	}
	for i := range r.parts {
		n.offer(r.choice, &r.parts[i], prec)
	}
	prec.rank = rankMirror
	for i := range r.mirrors {
		n.offer(r.choice, &r.mirrors[i], prec)
	}
}

func (n *namer) offer(d *choice, p *backendPlan, prec precedence) {
	if !p.mayShare {
		return
	}
	common := n.targetCluster(p.key)
	if p.template == nil || isVariant(p.template.GetName(), p.key) {
		return
	}
	if p.candidate = n.candidate(d, p.backendChoice); p.candidate != nil {
		common.offer(p.candidate, prec)
	}
}

// assignAll assigns each backend of a rule its cluster.
func (n *namer) assignAll(r *rulePlan) {
	for i := range r.parts {
		n.assign(r.choice, &r.parts[i])
	}
	for i := range r.mirrors {
		p := &r.mirrors[i]
		if common := n.targetCluster(p.key); common.chosen != nil {
			p.share(common)
		}
	}
	n.recordSettings(r)
}

// assign assigns a backend its cluster: the common one, one that backends with the same settings
// share, or a separate one.
func (n *namer) assign(d *choice, p *backendPlan) {
	p.cluster = p.own
	if !p.mayShare {
		return
	}
	common := n.targetCluster(p.key)
	switch {
	case p.template == nil && common.present, p.candidate != nil && p.candidate.alike(common.chosen):
		p.share(common)
	case isVariant(p.template.GetName(), p.key):
		p.cluster = p.template.GetName()
	case p.candidate != nil:
		name, err := n.variant(d, p)
		if err != nil {
			return
		}
		p.cluster, p.shared = name, proto.CloneOf(p.candidate.cluster)
		p.shared.Name = name
	}
}

// share assigns the common cluster of the backend's target.
func (p *backendPlan) share(common *targetCluster) {
	p.cluster = p.key.ClusterName()
	if !common.present {
		p.shared = common.chosen.cluster
	}
}

// addOwn makes the separate clusters of a rule's backends.
func (n *namer) addOwn(r *rulePlan) error {
	clusters := map[*backendPlan]*clusterv3.Cluster{}
	for i := range r.parts {
		p := &r.parts[i]
		if p.cluster != p.own {
			continue
		}
		c, err := ownCluster(n.source, p.backendChoice)
		if err != nil {
			return err
		}
		if p.target != nil {
			n.trust(&p.target.Shape)
		}
		clusters[p] = c
	}
	for i := range r.parts {
		if c := clusters[&r.parts[i]]; c != nil {
			n.place(&r.parts[i], c)
		}
	}
	return nil
}

// place names a cluster among the clusters that a route has for one target. Rules with the same
// settings share one, so that each rule keeps its cluster when others come and go.
func (n *namer) place(p *backendPlan, c *clusterv3.Cluster) {
	for i := 0; ; i++ {
		c.Name = nth(p.own, i)
		existing := n.own[c.GetName()]
		if existing != nil && !alike(existing, c) {
			continue
		}
		if existing == nil {
			n.own[c.GetName()] = c
		}
		p.cluster = c.GetName()
		return
	}
}

// trust adds the secrets with the authorities of a target's certificates.
func (n *namer) trust(s *ir.Shape) { addAuthorities(n.secrets, s) }
