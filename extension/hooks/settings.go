// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// maxSettings limits the number of rules with settings that a translation reports.
const maxSettings = 1024

// Settings describes how a rule's cluster differs from its target's common cluster, because Envoy
// Gateway made other settings for the rule.
type Settings struct {
	Route  ir.RouteKey
	Rule   int
	Target ir.TargetKey

	// Cluster is TARGET/settings/HASH.
	Cluster string

	// Differs are the fields in which the cluster differs from the common one, sorted. Empty if the
	// common cluster no longer exists.
	Differs []string
}

// recordSettings records the plans whose cluster depends on their settings.
func (n *namer) recordSettings(r *rulePlan) {
	for i := range r.parts {
		p := &r.parts[i]
		if !isVariant(p.cluster, p.key) || len(n.settings) == maxSettings {
			continue
		}
		cluster := p.shared
		if cluster == nil {
			cluster = n.clusters[p.cluster]
		}
		s := Settings{Route: r.choice.use.key.route, Rule: r.choice.use.key.rule, Target: p.key, Cluster: p.cluster}
		if common := n.targetCluster(p.key).chosen; common != nil && cluster != nil {
			s.Differs = differing(common.cluster, cluster)
		}
		n.settings = append(n.settings, s)
	}
}

// identityFields are fields that only identify a cluster.
var identityFields = map[protoreflect.Name]bool{"name": true, "alt_stat_name": true, "metadata": true, "eds_cluster_config": true, "dns_lookup_family": true}

// differing returns the fields in which two clusters differ, by their JSON names.
func differing(a, b *clusterv3.Cluster) []string {
	lhs, right := a.ProtoReflect(), b.ProtoReflect()
	var out []string
	fields := lhs.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if identityFields[f.Name()] {
			continue
		}
		if lhs.Has(f) != right.Has(f) || lhs.Has(f) && !lhs.Get(f).Equal(right.Get(f)) {
			out = append(out, f.JSONName())
		}
	}
	slices.Sort(out)
	return out
}
