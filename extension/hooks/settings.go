// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// maxSettings are how many rules with settings a translation tells of.
const maxSettings = 1024

// Settings are what a rule's cluster has other than its target's common one, where Envoy
// Gateway made something else for it.
type Settings struct {
	Route  ir.RouteKey
	Rule   int
	Target ir.TargetKey

	// Cluster is TARGET/settings/HASH.
	Cluster string

	// Differs are the fields of the cluster that are not those of the common one, sorted.
	// None where there is no common one any more.
	Differs []string
}

// tellSettings of parts that have a cluster by their settings.
func (t *translation) tellSettings(d *decision) {
	for _, p := range d.parts {
		if !isVariant(p.cluster, p.key) || len(t.summary.Settings) == maxSettings {
			continue
		}
		is := p.shared
		if is == nil {
			is = t.clusters[p.cluster]
		}
		s := Settings{Route: d.use.key.route, Rule: d.use.key.rule, Target: p.key, Cluster: p.cluster}
		if of := t.common(p.key).chosen; of != nil && is != nil {
			s.Differs = differing(of.cluster, is)
		}
		t.summary.Settings = append(t.summary.Settings, s)
	}
}

// unsettled are fields that only say which cluster it is.
var unsettled = map[protoreflect.Name]bool{"name": true, "alt_stat_name": true, "metadata": true, "eds_cluster_config": true, "dns_lookup_family": true} //nolint:gochecknoglobals // A constant set.

// differing are the fields in which two clusters are not equal, as JSON calls them.
func differing(a, b *clusterv3.Cluster) []string {
	left, right := a.ProtoReflect(), b.ProtoReflect()
	var out []string
	fields := left.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if unsettled[f.Name()] {
			continue
		}
		if left.Has(f) != right.Has(f) || left.Has(f) && !left.Get(f).Equal(right.Get(f)) {
			out = append(out, f.JSONName())
		}
	}
	slices.Sort(out)
	return out
}
