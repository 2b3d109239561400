// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// A source is a backend with its endpoints before they are grouped by zone.
type source struct {
	name      string
	priority  uint32
	weight    uint64
	endpoints []zonedEndpoint

	// remote reports that the source leads to another cluster, proxied that its endpoints
	// are egress proxies although the source is not remote, and offline that the tailnet
	// reports its device as offline.
	remote, proxied, offline bool

	// cluster is the ID of the cluster that the source leads to. It is empty for this one.
	cluster string
}

// localities returns one locality for each zone of each source. Together, the localities of
// a source have its weight. A source of weight 0 has none.
func localities(sources []source) []ir.Locality {
	sources = slices.DeleteFunc(slices.Clone(sources), func(s source) bool { return s.weight == 0 })
	scales := scale(sources)
	var out []ir.Locality
	for _, s := range sources {
		zones, sizes := map[string][]ir.Endpoint{}, map[string]int{}
		for _, e := range s.endpoints {
			sizes[e.zone]++
		}
		for _, e := range s.endpoints {
			if zones[e.zone] == nil {
				zones[e.zone] = make([]ir.Endpoint, 0, sizes[e.zone])
			}
			zones[e.zone] = append(zones[e.zone], e.Endpoint)
		}
		if len(zones) == 0 {
			zones[""] = nil
		}
		total := usable(s.endpoints)
		for _, z := range slices.Sorted(maps.Keys(zones)) {
			share := 1.0
			if len(zones) > 1 && total > 0 {
				share = float64(usableOf(zones[z])) / float64(total)
			}
			w := math.Round(float64(s.weight) * scales[s.priority] * share)
			out = append(out, ir.Locality{
				Name:      s.name,
				Zone:      z,
				Priority:  s.priority,
				Remote:    s.remote,
				Proxied:   s.proxied,
				Weight:    uint32(min(max(w, 1), math.MaxUint32)),
				Endpoints: zones[z],
			})
		}
	}
	slices.SortStableFunc(out, func(a, b ir.Locality) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Zone, b.Zone))
	})
	return out
}

// scale returns a factor for the weights of each priority, so that the shares of zones are
// whole numbers: the least common multiple of the sources' numbers of endpoints, or the
// largest factor that Envoy accepts. It is 1 if no source is in several zones.
func scale(sources []source) map[uint32]float64 {
	sum, multiple := map[uint32]uint64{}, map[uint32]uint64{}
	for _, s := range sources {
		sum[s.priority] += s.weight
		m := max(multiple[s.priority], 1)
		if n := usable(s.endpoints); severalZones(s.endpoints) && n > 0 && m < math.MaxUint32 {
			m = lcm(m, n)
		}
		multiple[s.priority] = m
	}
	out := make(map[uint32]float64, len(sum))
	for p, w := range sum {
		// Envoy sums up the weights of a priority in 32 bits, and rounding increases the
		// sum.
		out[p] = min(float64(multiple[p]), float64(math.MaxInt32)/float64(w))
	}
	return out
}

// lcm returns the least common multiple.
func lcm(a, b uint64) uint64 {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x * b
}

// severalZones reports whether the endpoints are in more than one zone.
func severalZones(endpoints []zonedEndpoint) bool {
	return slices.ContainsFunc(endpoints, func(e zonedEndpoint) bool { return e.zone != endpoints[0].zone })
}

// usable counts the endpoints that accept new requests.
func usable(endpoints []zonedEndpoint) uint64 {
	n := uint64(0)
	for _, e := range endpoints {
		if e.Health != ir.Draining {
			n++
		}
	}
	return n
}

// usableOf counts the endpoints that accept new requests.
func usableOf(endpoints []ir.Endpoint) uint64 {
	n := uint64(0)
	for _, e := range endpoints {
		if e.Health != ir.Draining {
			n++
		}
	}
	return n
}

// empty reports whether no endpoint accepts new requests.
func empty(ls []ir.Locality) bool {
	return !slices.ContainsFunc(ls, func(l ir.Locality) bool { return usableOf(l.Endpoints) > 0 })
}
