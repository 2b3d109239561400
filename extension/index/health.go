// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// SetHealth says what probes have found out about targets. Others keep what was told of
// them. Those that no route names are left out. There is one snapshot for all.
func (s *Store) SetHealth(of map[ir.TargetKey]ir.Placement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	began := time.Now()
	d := newDirty()
	for k, p := range of {
		if len(s.namedBy[consumer{target: k}]) == 0 || s.world.placements[k].Equal(p) {
			continue
		}
		if p.IsZero() {
			delete(s.world.placements, k)
		} else {
			s.world.placements[k] = p
		}
		d.targets[k] = struct{}{}
	}
	s.advance(d, began)
}

// locate the endpoints of sources, as far as probes allow, and remember who is to be
// probed.
func (v *view) locate(t *ir.Target, sources []source) {
	if t.Shape.HealthCheck != nil {
		t.Candidates = candidates(sources)
	}
	t.Localities = localities(place(sources, v.placements[t.Key]))
}

// candidates are the endpoints that may get something new.
func candidates(sources []source) []ir.Candidate {
	var out []ir.Candidate
	for _, s := range sources {
		if s.weight == 0 {
			continue
		}
		for _, e := range s.endpoints {
			if e.Health == ir.Draining {
				continue
			}
			out = append(out, ir.Candidate{
				Source: s.name, Remote: s.remote, Cluster: s.cluster, Offline: s.offline, Zone: e.zone, Weight: e.Weight,
				Address: ir.Address{Host: e.Address, Port: e.Port}, Hostname: e.Hostname,
			})
		}
	}
	return out
}

// place endpoints by health. Those that are sick come last, but never out:
//   - If nothing well is left nothing moves. To send traffic to who may be sick is
//     better than to nobody.
//   - If others that are well stand behind them, or behind the first of those, the sick
//     keep their place and are marked as degraded. Envoy then has the traffic go over as
//     gradually as endpoints fail, and uses the degraded only after all that are well. It
//     goes on using them until it has found well who has just come.
//   - Else they move behind all others. Envoy's workers learn of priorities one after the
//     other, and find in between who is well.
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
			gone := s
			gone.priority = end
			moved = append(moved, gone)
			s.endpoints = nil
			out = append(out, s)
			continue
		}
		well, sick := divide(p, s.endpoints)
		switch {
		case len(sick) == 0:
		case behind || s.priority < first:
			s.endpoints = sortedByAddress(append(well, sick...))
		default:
			gone := s
			gone.priority, gone.endpoints = end, sick
			moved = append(moved, gone)
			s.endpoints = well
		}
		out = append(out, s)
	}
	return append(out, moved...)
}

// hasHealthy reports whether a source has an endpoint that may get something new and is not sick.
func hasHealthy(p ir.Placement, s source) bool {
	return s.weight > 0 && slices.ContainsFunc(s.endpoints, func(e zoned) bool { return e.Health != ir.Draining && !isSick(p, e) })
}

func isSick(p ir.Placement, e zoned) bool { return p.Sick[ir.Address{Host: e.Address, Port: e.Port}] }

// divide endpoints into those that are well, and those that are sick, which are marked.
// Who drains has health of its own.
func divide(p ir.Placement, in []zoned) (well, sick []zoned) {
	for _, e := range in {
		if e.Health != ir.Draining && isSick(p, e) {
			e.Health = ir.Degraded
			sick = append(sick, e)
			continue
		}
		well = append(well, e)
	}
	return well, sick
}

func sortedByAddress(in []zoned) []zoned {
	slices.SortStableFunc(in, func(a, b zoned) int {
		return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.Port, b.Port))
	})
	return in
}
