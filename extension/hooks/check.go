// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

// check returns a reason if not all of the message's routes can be changed as chosen. Either all
// of them change or none.
func (d *choice) check() Reason {
	for _, a := range d.use.actions {
		if reason := d.checkAction(a.RouteAction); reason != "" {
			return reason
		}
	}
	return ""
}

func (d *choice) checkAction(a *routev3.RouteAction) Reason {
	if d.outcome == mirrored {
		return ""
	}
	switch c := a.GetClusterSpecifier().(type) {
	case *routev3.RouteAction_Cluster:
		if !d.known(c.Cluster) {
			return Patched
		}
	case *routev3.RouteAction_WeightedClusters:
		if d.outcome != split && len(d.kept(c.WeightedClusters)) > 0 {
			// Envoy Gateway has backends that the snapshot lacks.
			return Stale
		}
	default:
		return Patched
	}
	return ""
}

// known reports whether Envoy Gateway or the extension makes this cluster for the rule.
func (d *choice) known(cluster string) bool {
	return cluster == d.use.key.cluster() || d.ours(cluster)
}

// ours reports whether a cluster belongs to one of the rule's Tailscale backends, before or after
// the change.
func (d *choice) ours(cluster string) bool {
	if d.refused[cluster] {
		return true
	}
	for i := range d.parts {
		p := &d.parts[i]
		if isNth(cluster, p.own) || cluster == p.key.ClusterName() || isVariant(cluster, p.key) || cluster == p.template.GetName() && !d.pools(cluster) {
			return true
		}
	}
	return false
}

// kept returns the entries that Envoy Gateway made for siblings.
func (d *choice) kept(w *routev3.WeightedCluster) []weighted {
	var out []weighted
	for _, c := range w.GetClusters() {
		if c.GetName() == invalidCluster || d.ours(c.GetName()) {
			continue
		}
		out = append(out, weighted{name: c.GetName(), weight: c.GetWeight().GetValue(), original: c})
	}
	return out
}

// pools reports whether a cluster holds the siblings in the rule.
func (d *choice) pools(cluster string) bool {
	return d.outcome == split && d.siblings > 0 && cluster == d.use.key.cluster()
}

// pooled returns Envoy Gateway's one cluster for all backends of the rule. Tailscale backends have
// no endpoints in it, so it serves the siblings, with their weights.
func (d *choice) pooled() []weighted {
	if d.siblings == 0 {
		return nil
	}
	return []weighted{{name: d.use.key.cluster(), weight: clamp(d.siblings)}}
}
