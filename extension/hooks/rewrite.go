// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"cmp"
	"math"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

// A weighted cluster gets the part of a rule's requests that its weight states.
type weighted struct {
	name   string
	weight uint32

	// original is Envoy Gateway's own entry, with its filters.
	original *routev3.WeightedCluster_ClusterWeight

	// changes to requests. Nil means none.
	changes *ir.Changes
}

// entry returns the entry for a route to several clusters.
func (w weighted) entry() *routev3.WeightedCluster_ClusterWeight {
	if w.original != nil {
		return w.original
	}
	out := &routev3.WeightedCluster_ClusterWeight{Name: w.name, Weight: wrapperspb.UInt32(w.weight)}
	if w.changes != nil {
		xds.Change(out, w.changes)
	}
	return out
}

// check returns a reason if not all of the message's routes can be changed as decided. Either all
// of them change or none.
func (d *decision) check() Reason {
	for _, a := range d.use.actions {
		if reason := d.checkAction(a.RouteAction); reason != "" {
			return reason
		}
	}
	return ""
}

func (d *decision) checkAction(a *routev3.RouteAction) Reason {
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
func (d *decision) known(cluster string) bool {
	return cluster == d.use.key.cluster() || d.ours(cluster)
}

// ours reports whether a cluster belongs to one of the rule's Tailscale backends, before or after
// the change.
func (d *decision) ours(cluster string) bool {
	if d.refused[cluster] {
		return true
	}
	for _, p := range d.parts {
		if isNth(cluster, p.own) || cluster == p.key.ClusterName() || isVariant(cluster, p.key) || cluster == p.template.GetName() && !d.pools(cluster) {
			return true
		}
	}
	return false
}

// kept returns the entries that Envoy Gateway made for siblings.
func (d *decision) kept(w *routev3.WeightedCluster) []weighted {
	var out []weighted
	for _, c := range w.GetClusters() {
		if c.GetName() == invalidCluster || d.ours(c.GetName()) {
			continue
		}
		out = append(out, weighted{name: c.GetName(), weight: c.GetWeight().GetValue(), original: c})
	}
	return out
}

// invalidWeight returns the weight of the requests that Envoy Gateway makes fail.
func invalidWeight(w *routev3.WeightedCluster) uint32 {
	for _, c := range w.GetClusters() {
		if c.GetName() == invalidCluster {
			return c.GetWeight().GetValue()
		}
	}
	return 0
}

// clusters returns the clusters of the rule by weight: first the invalid one, as Envoy Gateway
// does, then the siblings, then the extension's by name. The weights are those of the route. The
// remaining weight fails only as far as Envoy Gateway or the snapshot have references that must
// fail: a snapshot with other weights than the message must not fail requests.
func (d *decision) clusters(siblings []weighted, invalid uint32) []weighted {
	var ours []weighted
	remaining := d.total
	for _, p := range d.parts {
		remaining -= min(remaining, uint64(p.ref.Weight))
		i := slices.IndexFunc(ours, func(w weighted) bool { return w.name == p.cluster && w.changes == nil && p.ref.Changes == nil })
		if i >= 0 {
			ours[i].weight = clamp(uint64(ours[i].weight) + uint64(p.ref.Weight))
			continue
		}
		ours = append(ours, weighted{name: p.cluster, weight: p.ref.Weight, changes: p.ref.Changes})
	}
	slices.SortStableFunc(ours, func(a, b weighted) int { return cmp.Compare(a.name, b.name) })
	for _, k := range siblings {
		remaining -= min(remaining, uint64(k.weight))
	}
	remaining = min(remaining, max(uint64(invalid), d.unresolved))
	out := make([]weighted, 0, 1+len(siblings)+len(ours))
	if remaining > 0 {
		out = append(out, weighted{name: invalidCluster, weight: clamp(remaining)})
	}
	out = append(out, siblings...)
	return append(out, ours...)
}

// pools reports whether a cluster holds the siblings in the rule.
func (d *decision) pools(cluster string) bool {
	return d.outcome == split && d.siblings > 0 && cluster == d.use.key.cluster()
}

// pooled returns Envoy Gateway's one cluster for all backends of the rule. Tailscale backends have
// no endpoints in it, so it serves the siblings, with their weights.
func (d *decision) pooled() []weighted {
	if d.siblings == 0 {
		return nil
	}
	return []weighted{{name: d.use.key.cluster(), weight: clamp(d.siblings)}}
}

// rewrite changes the rule's routes and filters in the message.
func (d *decision) rewrite() error {
	for _, a := range d.use.actions {
		d.rewriteAction(a.RouteAction)
		d.rewriteMirrors(a.RouteAction)
		if len(d.parts) == 0 {
			continue
		}
		if err := xds.Retry(a.RouteAction, a.safe); err != nil {
			return err
		}
	}
	if d.outcome != single && d.outcome != split {
		return nil
	}
	clusters := d.clusters(d.pooled(), 0)
	for _, f := range d.use.tcp {
		if err := f.send(clusters); err != nil {
			return err
		}
	}
	for _, f := range d.use.udp {
		if err := f.send(clusters[0].name); err != nil {
			return err
		}
	}
	return nil
}

func (d *decision) rewriteAction(a *routev3.RouteAction) {
	switch d.outcome {
	case single:
		d.splitAction(a)
	case swapped:
		a.ClusterSpecifier = &routev3.RouteAction_Cluster{Cluster: d.parts[0].cluster}
	case split:
		d.splitAction(a)
	case mirrored:
	}
}

func (d *decision) splitAction(a *routev3.RouteAction) {
	siblings, invalid := d.pooled(), uint32(0)
	previous := a.GetWeightedClusters()
	if previous != nil {
		siblings, invalid = d.kept(previous), invalidWeight(previous)
	}
	clusters := d.clusters(siblings, invalid)
	if len(clusters) == 1 && clusters[0].original == nil && clusters[0].changes == nil && clusters[0].name != invalidCluster {
		a.ClusterSpecifier = &routev3.RouteAction_Cluster{Cluster: clusters[0].name}
		return
	}
	w := &routev3.WeightedCluster{}
	if previous != nil {
		w = previous
		w.Clusters = nil
	}
	for _, c := range clusters {
		w.Clusters = append(w.Clusters, c.entry())
	}
	if len(a.GetHashPolicy()) > 0 {
		// Envoy Gateway does the same: otherwise Envoy would choose the cluster at random.
		w.RandomValueSpecifier = &routev3.WeightedCluster_UseHashPolicy{UseHashPolicy: wrapperspb.Bool(true)}
	}
	if invalid == 0 && clusters[0].name == invalidCluster {
		// Gateway API requires this code for a reference that cannot be resolved. A code that Envoy
		// Gateway has set stays.
		a.ClusterNotFoundResponseCode = routev3.RouteAction_INTERNAL_SERVER_ERROR
	}
	a.ClusterSpecifier = &routev3.RouteAction_WeightedClusters{WeightedClusters: w}
}

func (d *decision) rewriteMirrors(a *routev3.RouteAction) {
	for _, m := range a.GetRequestMirrorPolicies() {
		for _, p := range d.mirrors {
			if p.cluster != "" && m.GetCluster() == p.own {
				m.Cluster = p.cluster
			}
		}
	}
}

// answerEmpty answers 500 for routes with an empty list of weighted clusters. Envoy Gateway makes
// them of rules whose only backends are of an extension's kinds where each backend has a separate
// cluster, as with weights of zones, and would publish nothing for a Gateway with such a route
// (buildXdsWeightedRouteAction in its internal/xds/translator/route.go). For backends that cannot
// be resolved it uses a cluster that does not exist, and so does this function.
func answerEmpty(configs []*routev3.RouteConfiguration) {
	for _, c := range configs {
		for _, v := range c.GetVirtualHosts() {
			for _, r := range v.GetRoutes() {
				w := r.GetRoute().GetWeightedClusters()
				if w != nil && len(w.GetClusters()) == 0 {
					w.Clusters = []*routev3.WeightedCluster_ClusterWeight{{Name: invalidCluster, Weight: wrapperspb.UInt32(1)}}
				}
			}
		}
	}
}

// referenced returns the clusters that routes name. The hook decodes an L4 filter only if its rule
// has Tailscale backends, and such a filter no longer names an idle cluster.
func referenced(r Resources) map[string]bool {
	out := map[string]bool{}
	for _, c := range r.Routes {
		for _, v := range c.GetVirtualHosts() {
			for _, route := range v.GetRoutes() {
				reference(out, route.GetRoute())
			}
		}
	}
	return out
}

func reference(out map[string]bool, a *routev3.RouteAction) {
	if a == nil {
		return
	}
	out[a.GetCluster()] = true
	for _, c := range a.GetWeightedClusters().GetClusters() {
		out[c.GetName()] = true
	}
	for _, m := range a.GetRequestMirrorPolicies() {
		out[m.GetCluster()] = true
	}
}

func clamp(n uint64) uint32 {
	return uint32(min(n, math.MaxUint32))
}

// gatewayOf returns the Gateway that a message is for, as namespace/name, from the metadata of its
// virtual hosts. Without virtual hosts it uses the listeners' names, except with XDSNameSchemeV2.
// Empty if neither names it.
func gatewayOf(r Resources) string {
	for _, c := range r.Routes {
		for _, v := range c.GetVirtualHosts() {
			for _, m := range v.GetMetadata().GetFilterMetadata()["envoy-gateway"].GetFields()["resources"].GetListValue().GetValues() {
				f := m.GetStructValue().GetFields()
				if f["kind"].GetStringValue() == "Gateway" {
					return f["namespace"].GetStringValue() + "/" + f["name"].GetStringValue()
				}
			}
		}
	}
	for _, l := range r.Listeners {
		if p := strings.Split(l.GetName(), "/"); len(p) >= 3 {
			return p[0] + "/" + p[1]
		}
	}
	return ""
}
