// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/common/v3"
	leastrequestv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/least_request/v3"
	randomv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/random/v3"
	roundrobinv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/round_robin/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// Tuned returns the part of a policy's tuning that applies to the list of a cluster. The cluster
// shows whether the policy is applied to it: Envoy Gateway chooses among several policies. A
// cluster with an endpoint list of the extension keeps that list's tuning.
func Tuned(c *clusterv3.Cluster, t ir.Tuning) ir.Tuning {
	if list := strings.TrimPrefix(c.GetEdsClusterConfig().GetServiceName(), XDSTPPrefix); strings.HasPrefix(list, ir.OursPrefix) {
		if _, tuning, ok := ir.ParseTuning(list); ok {
			return tuning
		}
	}
	if len(c.GetHealthChecks()) == 0 {
		t.HealthPort = 0
	}
	t.PreferLocal = prefersLocal(c.GetLoadBalancingPolicy())
	return t
}

// prefersLocal reports whether a load balancer prefers Envoy's zone (buildZoneAwareLbConfig in
// Envoy Gateway's internal/xds/translator/cluster.go).
func prefersLocal(p *clusterv3.LoadBalancingPolicy) bool {
	for _, policy := range p.GetPolicies() {
		a := policy.GetTypedExtensionConfig().GetTypedConfig()
		if bytes.Equal(a.GetValue(), defaultLeastRequest) {
			// The usual case, without decoding.
			continue
		}
		for _, m := range []interface {
			proto.Message
			GetLocalityLbConfig() *commonv3.LocalityLbConfig
		}{&leastrequestv3.LeastRequest{}, &roundrobinv3.RoundRobin{}, &randomv3.Random{}} {
			if a.MessageIs(m) && a.UnmarshalTo(m) == nil && m.GetLocalityLbConfig().GetZoneAwareLbConfig() != nil {
				return true
			}
		}
	}
	return false
}

// weighZones gives the zones of each priority their weights, whatever the weights of their
// backends, which share a zone's weight as they would share the total. A zone that is not named
// weighs 1, as with Envoy Gateway.
func weighZones(ls []ir.Locality, zones []ir.ZoneWeight) []ir.Locality {
	if len(zones) == 0 {
		return ls
	}
	weights, total := map[string]uint64{}, uint64(0)
	for _, z := range zones {
		weights[z.Zone] = uint64(z.Weight)
	}
	weightOf := func(zone string) uint64 {
		if w, ok := weights[zone]; ok {
			return w
		}
		return 1
	}
	type place struct {
		priority uint32
		zone     string
	}
	groups := map[place][]int{}
	for i, l := range ls {
		k := place{priority: l.Priority, zone: l.Zone}
		groups[k] = append(groups[k], i)
	}
	for k := range groups {
		total = max(total, weightOf(k.zone)*uint64(len(groups)))
	}
	// Envoy adds the weights of a priority in 32 bits.
	whole := min(total*weightScale, maxWeight)
	out := slices.Clone(ls)
	for k, group := range groups {
		members := make([]ir.Locality, 0, len(group))
		for _, i := range group {
			members = append(members, ls[i])
		}
		w := weightOf(k.zone) * whole / max(total, 1)
		for n, part := range divide(w, members) {
			if w == 0 {
				part = 0
			}
			out[group[n]].Weight = part
		}
	}
	return out
}

// checkAt makes Envoy check endpoints at another port than they serve.
func checkAt(l *endpointv3.LocalityLbEndpoints, port uint32) {
	for _, e := range l.GetLbEndpoints() {
		e.GetEndpoint().HealthCheckConfig = &endpointv3.Endpoint_HealthCheckConfig{PortValue: port}
	}
}

// byZone merges the localities of each priority and zone into one with the zone only, which Envoy
// compares with its own zone. Endpoints then have the weights of their backends.
func byZone(ls []*endpointv3.LocalityLbEndpoints) []*endpointv3.LocalityLbEndpoints {
	ls = slices.Clone(ls)
	slices.SortStableFunc(ls, func(a, b *endpointv3.LocalityLbEndpoints) int {
		return cmp.Or(cmp.Compare(a.GetPriority(), b.GetPriority()), cmp.Compare(a.GetLocality().GetZone(), b.GetLocality().GetZone()))
	})
	var out []*endpointv3.LocalityLbEndpoints
	for len(ls) > 0 {
		n := slices.IndexFunc(ls, func(l *endpointv3.LocalityLbEndpoints) bool {
			return l.GetPriority() != ls[0].GetPriority() || l.GetLocality().GetZone() != ls[0].GetLocality().GetZone()
		})
		if n < 0 {
			n = len(ls)
		}
		merged := &endpointv3.LocalityLbEndpoints{
			Locality: &corev3.Locality{Zone: ls[0].GetLocality().GetZone()},
			Priority: ls[0].GetPriority(),
		}
		weight := uint32(0)
		for _, l := range ls[:n] {
			weight += l.GetLoadBalancingWeight().GetValue()
			if n > 1 {
				weighEndpoints(l)
			}
			merged.LbEndpoints = append(merged.LbEndpoints, l.GetLbEndpoints()...)
		}
		if weight > 0 {
			merged.LoadBalancingWeight = wrapperspb.UInt32(weight)
		}
		out = append(out, merged)
		ls = ls[n:]
	}
	return out
}

// weighEndpoints gives the endpoints of a locality weights that add up to the locality's.
func weighEndpoints(l *endpointv3.LocalityLbEndpoints) {
	for _, e := range l.GetLbEndpoints() {
		part := uint64(l.GetLoadBalancingWeight().GetValue()) * weightScale / uint64(len(l.GetLbEndpoints()))
		e.LoadBalancingWeight = wrapperspb.UInt32(uint32(min(max(part, 1), maxWeight/uint64(len(l.GetLbEndpoints())))))
	}
}
