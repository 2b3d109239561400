// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"math"
	"slices"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// locate sets the localities of a target from its sources and its placement, and the
// candidates for probes.
func (v *view) locate(t *ir.Target, sources []source) {
	sources = v.limit(t, sources)
	if t.Shape.HealthCheck != nil {
		t.Candidates = candidates(sources)
	}
	p := v.placements[t.Key]
	t.Drains = v.drains
	if v.drains {
		p.Local, p.LocalOnly = true, false
	}
	t.Localities = localities(place(sources, p))
}

// candidates returns the endpoints that accept new requests.
func candidates(sources []source) []ir.Candidate {
	n := 0
	for _, s := range sources {
		if s.weight > 0 {
			n += int(usable(s.endpoints))
		}
	}
	if n == 0 {
		return nil
	}
	// Candidates are most of a target: none is allocated in vain.
	out := make([]ir.Candidate, 0, n)
	for _, s := range sources {
		if s.weight == 0 {
			continue
		}
		origin := &ir.Origin{Source: s.name, Remote: s.remote, Cluster: s.cluster, Offline: s.offline}
		for _, e := range s.endpoints {
			if e.Health == ir.Draining {
				continue
			}
			out = append(out, ir.Candidate{
				Origin: origin, Zone: e.zone, Weight: e.Weight, Address: ir.Address{Host: e.Address, Port: e.Port}, Hostname: e.Hostname,
			})
		}
	}
	return out
}

// place orders endpoints by health. Unhealthy endpoints come last, and are never removed:
//   - If no healthy endpoint is left, nothing moves. An endpoint that may be unhealthy is better
//     than none.
//   - If healthy endpoints follow in a later priority, the unhealthy ones keep their priority and
//     are marked as degraded. Envoy then moves traffic as gradually as endpoints fail, and uses
//     degraded endpoints only after all healthy ones. It uses them until its own checks pass for
//     endpoints that are new.
//   - Otherwise they move behind all others. Envoy's workers learn of priorities one after the
//     other, and still find a healthy endpoint in between.
func place(sources []source, p ir.Placement) []source {
	if p.IsZero() {
		return sources
	}
	sources = slices.Clone(sources)
	if p.LocalOnly && slices.ContainsFunc(sources, func(s source) bool { return !s.remote && s.weight > 0 && usable(s.endpoints) > 0 }) {
		for i := range sources {
			if sources[i].remote {
				sources[i].endpoints = nil
			}
		}
	}
	last := func(s source) bool { return p.Waiting[s.name] || p.Local && !s.remote }
	first, behind, end := uint32(math.MaxUint32), false, ir.PriorityUnhealthy
	for _, s := range sources {
		if s.weight > 0 {
			end = max(end, s.priority+1)
		}
		if !last(s) && hasHealthy(p, s) {
			first = min(first, s.priority)
		}
	}
	if first == math.MaxUint32 {
		return sources
	}
	for _, s := range sources {
		behind = behind || s.priority > first && !last(s) && hasHealthy(p, s)
	}
	var out, moved []source
	for _, s := range sources {
		if last(s) {
			demoted := s
			demoted.priority = end
			moved = append(moved, demoted)
			s.endpoints = nil
			out = append(out, s)
			continue
		}
		healthy, unhealthy := divide(p, s.endpoints)
		switch {
		case len(unhealthy) == 0:
		case behind || s.priority < first:
			s.endpoints = sortedByAddress(append(healthy, unhealthy...))
		default:
			demoted := s
			demoted.priority, demoted.endpoints = end, unhealthy
			moved = append(moved, demoted)
			s.endpoints = healthy
		}
		out = append(out, s)
	}
	return append(out, moved...)
}

// hasHealthy reports whether a source has an endpoint that accepts new requests and is not
// unhealthy.
func hasHealthy(p ir.Placement, s source) bool {
	return s.weight > 0 && slices.ContainsFunc(s.endpoints, func(e zonedEndpoint) bool { return e.Health != ir.Draining && !isUnhealthy(p, e) })
}

// isUnhealthy reports whether probes of an endpoint fail.
func isUnhealthy(p ir.Placement, e zonedEndpoint) bool {
	return p.Unhealthy[ir.Address{Host: e.Address, Port: e.Port}]
}

// divide separates healthy endpoints from unhealthy ones, which it marks as degraded. A
// draining endpoint keeps that health.
func divide(p ir.Placement, endpoints []zonedEndpoint) (healthy, unhealthy []zonedEndpoint) {
	for _, e := range endpoints {
		if e.Health != ir.Draining && isUnhealthy(p, e) {
			e.Health = ir.Degraded
			unhealthy = append(unhealthy, e)
			continue
		}
		healthy = append(healthy, e)
	}
	return healthy, unhealthy
}

// sortedByAddress sorts the endpoints by address and port.
func sortedByAddress(endpoints []zonedEndpoint) []zonedEndpoint {
	slices.SortStableFunc(endpoints, func(a, b zonedEndpoint) int {
		return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.Port, b.Port))
	})
	return endpoints
}
