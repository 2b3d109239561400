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
	// weightScale is the number of parts of a unit of weight, which a backend's zones share.
	weightScale = 1000

	// maxWeight is the greatest sum of weights in a priority. Envoy's limit is twice that.
	maxWeight = 1 << 31
)

// Join merges the shares of several backends into one list of localities, and returns it with the
// greatest of their health thresholds. At each priority where a share has endpoints, the weights of
// its localities add up to the share's. Each share's priorities are packed first: a share without
// near endpoints must not lose its part to the others. Envoy computes health over all backends of a
// priority, so a failing backend first moves part of its traffic to the others; one cluster cannot
// avoid that.
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
	unit := min(weightScale, max(maxWeight/total, 1))

	var out []ir.Locality
	for i, s := range shares {
		out = append(out, pack(s.Localities, strconv.Itoa(i)+"/", uint64(s.Weight)*unit)...)
	}
	return out, threshold
}

// pack returns the localities that have endpoints, with priorities from zero without gaps, and with
// weights that add up to the given one in each priority. A locality with draining endpoints only
// stays in the list with no weight.
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

// divide gives each locality its part of the weight, and at least one. The rounding difference goes
// to the localities that lost most by rounding.
func divide(weight uint64, ls []ir.Locality) []uint32 {
	var total uint64
	for _, l := range ls {
		total += uint64(l.Weight)
	}
	out := make([]uint32, len(ls))
	remaining := weight
	order := make([]int, len(ls))
	for i, l := range ls {
		part := weight * uint64(l.Weight) / total
		out[i], order[i] = uint32(part), i
		remaining -= part
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(weight*uint64(ls[b].Weight)%total, weight*uint64(ls[a].Weight)%total)
	})
	for _, i := range order[:min(remaining, uint64(len(order)))] {
		out[i]++
	}
	for i := range out {
		out[i] = max(out[i], 1)
	}
	return out
}
