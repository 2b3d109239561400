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
func (r *rulePlan) clusters(siblings []weighted, invalid uint32) []weighted {
	var ours []weighted
	remaining := r.choice.total
	for i := range r.parts {
		p := &r.parts[i]
		remaining -= min(remaining, uint64(p.ref.Weight))
		same := slices.IndexFunc(ours, func(w weighted) bool { return w.name == p.cluster && w.changes == nil && p.ref.Changes == nil })
		if same >= 0 {
			ours[same].weight = clamp(uint64(ours[same].weight) + uint64(p.ref.Weight))
			continue
		}
		ours = append(ours, weighted{name: p.cluster, weight: p.ref.Weight, changes: p.ref.Changes})
	}
	slices.SortStableFunc(ours, func(a, b weighted) int { return cmp.Compare(a.name, b.name) })
	for _, k := range siblings {
		remaining -= min(remaining, uint64(k.weight))
	}
	remaining = min(remaining, max(uint64(invalid), r.choice.unresolved))
	out := make([]weighted, 0, 1+len(siblings)+len(ours))
	if remaining > 0 {
		out = append(out, weighted{name: invalidCluster, weight: clamp(remaining)})
	}
	out = append(out, siblings...)
	return append(out, ours...)
}

// rewrite changes the rule's routes and filters in the message.
func (r *rulePlan) rewrite() error {
	for _, a := range r.choice.use.actions {
		r.rewriteAction(a.RouteAction)
		r.rewriteMirrors(a.RouteAction)
		if len(r.parts) == 0 {
			continue
		}
		if err := xds.Retry(a.RouteAction, a.safe); err != nil {
			return err
		}
	}
	if r.choice.outcome != single && r.choice.outcome != split {
		return nil
	}
	clusters := r.clusters(r.choice.pooled(), 0)
	for _, f := range r.choice.use.tcp {
		if err := f.send(clusters); err != nil {
			return err
		}
	}
	for _, f := range r.choice.use.udp {
		if err := f.send(clusters[0].name); err != nil {
			return err
		}
	}
	return nil
}

func (r *rulePlan) rewriteAction(a *routev3.RouteAction) {
	switch r.choice.outcome {
	case single:
		r.splitAction(a)
	case swapped:
		a.ClusterSpecifier = &routev3.RouteAction_Cluster{Cluster: r.parts[0].cluster}
	case split:
		r.splitAction(a)
	case mirrored:
	}
}

func (r *rulePlan) splitAction(a *routev3.RouteAction) {
	siblings, invalid := r.choice.pooled(), uint32(0)
	previous := a.GetWeightedClusters()
	if previous != nil {
		siblings, invalid = r.choice.kept(previous), invalidWeight(previous)
	}
	clusters := r.clusters(siblings, invalid)
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

func (r *rulePlan) rewriteMirrors(a *routev3.RouteAction) {
	for _, m := range a.GetRequestMirrorPolicies() {
		for i := range r.mirrors {
			if p := &r.mirrors[i]; p.cluster != "" && m.GetCluster() == p.own {
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
