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

// A source is a backend with its endpoints, before they are grouped by zone.
type source struct {
	name      string
	priority  uint32
	weight    uint64
	endpoints []zoned

	// remote reports that it leads to another cluster, proxied that its endpoints are
	// egress proxies all the same, and offline that the tailnet reports the device
	// behind it as offline.
	remote, proxied, offline bool

	// cluster that it leads to, by its ID. Empty for this one.
	cluster string
}

// localities of sources: one a zone, which together have the weight of the source.
// Sources of weight 0 get none.
func localities(sources []source) []ir.Locality {
	sources = slices.DeleteFunc(slices.Clone(sources), func(s source) bool { return s.weight == 0 })
	scales := scale(sources)
	var out []ir.Locality
	for _, s := range sources {
		zones := map[string][]ir.Endpoint{}
		for _, e := range s.endpoints {
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

// scale of the weights of each priority, so that shares of zones are whole numbers:
// the least common multiple of how many endpoints the sources have, or the most that
// Envoy can take. Where no source is in several zones it is 1.
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
		// Envoy adds the weights of a priority up in 32 bits, and rounding adds some.
		out[p] = min(float64(multiple[p]), float64(math.MaxInt32)/float64(w))
	}
	return out
}

func lcm(a, b uint64) uint64 {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x * b
}

func severalZones(in []zoned) bool {
	return slices.ContainsFunc(in, func(e zoned) bool { return e.zone != in[0].zone })
}

// usable counts the endpoints that get something new.
func usable(in []zoned) uint64 {
	n := uint64(0)
	for _, e := range in {
		if e.Health != ir.Draining {
			n++
		}
	}
	return n
}

func usableOf(in []ir.Endpoint) uint64 {
	n := uint64(0)
	for _, e := range in {
		if e.Health != ir.Draining {
			n++
		}
	}
	return n
}

// empty reports whether nothing can answer.
func empty(ls []ir.Locality) bool {
	return !slices.ContainsFunc(ls, func(l ir.Locality) bool { return usableOf(l.Endpoints) > 0 })
}
