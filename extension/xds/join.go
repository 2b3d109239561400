// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

const (
	// finest is how many parts a unit of weight is divided into, for a backend's
	// zones to share it.
	finest = 1000

	// maxWeight is what the weights of a priority may add up to. Envoy's limit is
	// twice that.
	maxWeight = 1 << 31
)

// Join makes one list of localities out of the shares of several backends, and
// returns it with the greatest of their health thresholds. At each priority where a
// share has endpoints, its localities weigh together what the share does. Each
// share's own priorities are packed first: one that has nothing near must not lose
// its part to the others. Envoy reckons health over all backends of a priority, so
// one that fails sends part of the traffic to the others' first; that is the price
// of one cluster.
func Join(shares []ir.EndpointShare) ([]ir.Locality, uint32) {
	if len(shares) == 1 {
		return shares[0].Localities, shares[0].HealthThreshold
	}
	var threshold uint32
	var total uint64
	for _, s := range shares {
		threshold = max(threshold, s.HealthThreshold)
		total += uint64(s.Weight)
	}
	if total == 0 {
		return nil, threshold
	}
	unit := min(finest, max(maxWeight/total, 1))

	var out []ir.Locality
	for i, s := range shares {
		out = append(out, pack(s.Localities, strconv.Itoa(i)+"/", uint64(s.Weight)*unit)...)
	}
	return out, threshold
}

// pack returns the localities that have endpoints, with priorities from zero on
// without gaps, and weights that add up to the given one in each. Where all
// endpoints only finish what they have, Envoy must still know them, but they count
// for nothing.
func pack(ls []ir.Locality, prefix string, weight uint64) []ir.Locality {
	var out, open []ir.Locality
	for _, l := range merge(ls) {
		switch {
		case slices.ContainsFunc(l.Endpoints, func(e ir.Endpoint) bool { return e.Health != ir.Draining }):
			open = append(open, l)
		case len(l.Endpoints) > 0:
			l.Name, l.Priority, l.Weight = prefix+l.Name, 0, 1
			out = append(out, l)
		}
	}
	ls = open
	var priority uint32
	for len(ls) > 0 {
		n := slices.IndexFunc(ls, func(l ir.Locality) bool { return l.Priority != ls[0].Priority })
		if n < 0 {
			n = len(ls)
		}
		for i, w := range divide(weight, ls[:n]) {
			l := ls[i]
			l.Name, l.Priority, l.Weight = prefix+l.Name, priority, w
			out = append(out, l)
		}
		ls = ls[n:]
		priority++
	}
	return out
}

// divide gives each locality its part of the weight, and at least one. What rounding
// leaves goes to those that lost most by it.
func divide(weight uint64, ls []ir.Locality) []uint32 {
	var total uint64
	for _, l := range ls {
		total += uint64(l.Weight)
	}
	out := make([]uint32, len(ls))
	left := weight
	order := make([]int, len(ls))
	for i, l := range ls {
		part := weight * uint64(l.Weight) / total
		out[i], order[i] = uint32(part), i
		left -= part
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(weight*uint64(ls[b].Weight)%total, weight*uint64(ls[a].Weight)%total)
	})
	for _, i := range order[:min(left, uint64(len(order)))] {
		out[i]++
	}
	for i := range out {
		out[i] = max(out[i], 1)
	}
	return out
}
