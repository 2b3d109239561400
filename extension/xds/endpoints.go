// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"cmp"
	"math"
	"net/netip"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// Assignment returns an endpoint list. It merges localities of the same name, zone and priority,
// and numbers priorities without gaps, as Envoy requires. A locality without endpoints stays,
// because it keeps its priority's place. Each locality has a weight, because Envoy Gateway's
// clusters send nothing to a locality without one; the default is the number of endpoints.
//
// HealthThreshold is the percentage of healthy endpoints in a priority below which traffic begins
// to use the next one. Zero means Envoy's default, 72.
func Assignment(name string, ls []ir.Locality, healthThreshold uint32, t ir.Tuning) *endpointv3.ClusterLoadAssignment {
	a := &endpointv3.ClusterLoadAssignment{ClusterName: name}
	if healthThreshold > 0 {
		a.Policy = &endpointv3.ClusterLoadAssignment_Policy{OverprovisioningFactor: wrapperspb.UInt32(max(10_000/healthThreshold, 100))}
	}

	ls = weighZones(merge(ls), t.Zones)
	var priority uint32
	for i, l := range ls {
		if i > 0 && l.Priority != ls[i-1].Priority {
			priority++
		}
		group := locality(l, priority)
		if t.HealthPort != 0 && !l.Proxied && !l.Remote {
			checkAt(group, t.HealthPort)
		}
		a.Endpoints = append(a.Endpoints, group)
	}
	if t.PreferLocal {
		a.Endpoints = byZone(a.Endpoints)
	}
	return a
}

// merge returns localities by priority, name and zone, each once, with a weight, and with the
// endpoints that Envoy accepts.
func merge(ls []ir.Locality) []ir.Locality {
	out := slices.Clone(ls)
	for i, l := range out {
		out[i].Endpoints = acceptable(l.Endpoints)
		if l.Weight == 0 {
			out[i].Weight = uint32(max(len(out[i].Endpoints), 1))
		}
	}
	slices.SortStableFunc(out, compareLocalities)

	merged := out[:0]
	for _, l := range out {
		if n := len(merged); n > 0 && compareLocalities(merged[n-1], l) == 0 {
			merged[n-1].Weight += l.Weight
			merged[n-1].Endpoints = slices.Concat(merged[n-1].Endpoints, l.Endpoints)
			continue
		}
		merged = append(merged, l)
	}
	return merged
}

func compareLocalities(a, b ir.Locality) int {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Zone, b.Zone))
}

func locality(l ir.Locality, priority uint32) *endpointv3.LocalityLbEndpoints {
	eps := slices.Clone(l.Endpoints)
	slices.SortStableFunc(eps, compareEndpoints)
	// Of several endpoints with one address Envoy also uses the first.
	eps = slices.CompactFunc(eps, func(a, b ir.Endpoint) bool { return compareEndpoints(a, b) == 0 })

	out := &endpointv3.LocalityLbEndpoints{
		Locality:    &corev3.Locality{Region: l.Name, Zone: l.Zone},
		Priority:    priority,
		LbEndpoints: make([]*endpointv3.LbEndpoint, 0, len(eps)),
	}
	if l.Weight > 0 {
		// An absent weight means 0.
		out.LoadBalancingWeight = wrapperspb.UInt32(l.Weight)
	}
	for _, e := range eps {
		ep := endpoint(e)
		if l.Remote {
			ep.Metadata = &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{socketMatch: remoteMark()}}
		}
		out.LbEndpoints = append(out.LbEndpoints, ep)
	}
	return out
}

// acceptable returns the endpoints that Envoy accepts, each with its address in canonical form.
// Envoy refuses the whole response, with the lists of all other targets, if it cannot parse one
// address (Utility::protobufAddressToAddress in its source/common/network/utility.cc), and the API
// server stores addresses that Envoy cannot parse, such as 010.0.0.6.
func acceptable(eps []ir.Endpoint) []ir.Endpoint {
	out := make([]ir.Endpoint, 0, len(eps))
	for _, e := range eps {
		a, err := netip.ParseAddr(e.Address)
		if err != nil || a.Zone() != "" || e.Port <= 0 || e.Port > math.MaxUint16 {
			continue
		}
		e.Address = a.String()
		out = append(out, e)
	}
	return out
}

func compareEndpoints(a, b ir.Endpoint) int {
	return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.Port, b.Port))
}

func endpoint(e ir.Endpoint) *endpointv3.LbEndpoint {
	out := &endpointv3.LbEndpoint{
		HealthStatus: healthStatus(e.Health),
		HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
			Hostname: e.Hostname,
			Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
				Address:       e.Address,
				PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(e.Port)},
			}}},
		}},
	}
	if e.Weight > 0 {
		out.LoadBalancingWeight = wrapperspb.UInt32(e.Weight)
	}
	return out
}

func healthStatus(h ir.Health) corev3.HealthStatus {
	switch h {
	case ir.Healthy:
		return corev3.HealthStatus_HEALTHY
	case ir.Unhealthy:
		return corev3.HealthStatus_UNHEALTHY
	case ir.Draining:
		return corev3.HealthStatus_DRAINING
	case ir.Degraded:
		return corev3.HealthStatus_DEGRADED
	case ir.HealthUnknown:
		return corev3.HealthStatus_UNKNOWN
	}
	return corev3.HealthStatus_UNKNOWN
}
