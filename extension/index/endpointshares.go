// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/limits"
)

// endpointShares decide how many endpoints the targets of a namespace have: those of the oldest objects
// have all, and the others what is left of the limit. The result depends on the objects alone, so that
// all replicas decide alike.
type endpointShares struct {
	sizes map[string]map[ir.TargetKey]endpointSize

	// most are the numbers of endpoints of those targets that do not have all.
	most map[ir.TargetKey]int

	// dirty are the namespaces whose sizes have changed.
	dirty map[string]struct{}
}

// An endpointSize is the number of endpoints that a target has without a limit.
type endpointSize struct {
	created   time.Time
	endpoints int
}

func newEndpointShares() *endpointShares {
	return &endpointShares{sizes: map[string]map[ir.TargetKey]endpointSize{}, most: map[ir.TargetKey]int{}, dirty: map[string]struct{}{}}
}

// set replaces the size of a target. Without endpoints it has none.
func (s *endpointShares) set(k ir.TargetKey, n endpointSize) {
	if was := s.sizes[k.Namespace][k]; was.endpoints == n.endpoints && was.created.Equal(n.created) {
		return
	}
	s.dirty[k.Namespace] = struct{}{}
	if n.endpoints > 0 && s.sizes[k.Namespace] == nil {
		s.sizes[k.Namespace] = map[ir.TargetKey]endpointSize{}
	}
	put(s.sizes[k.Namespace], k, n, n.endpoints == 0)
	if len(s.sizes[k.Namespace]) == 0 {
		delete(s.sizes, k.Namespace)
	}
	if n.endpoints == 0 {
		delete(s.most, k)
	}
}

// settle decides again, and returns the targets that may have another number of endpoints than before.
func (s *endpointShares) settle() []ir.TargetKey {
	var out []ir.TargetKey
	for namespace := range s.dirty {
		sizes := s.sizes[namespace]
		order := make([]ir.TargetKey, 0, len(sizes))
		for k := range sizes {
			order = append(order, k)
		}
		slices.SortFunc(order, func(a, b ir.TargetKey) int {
			if d := sizes[a].created.Compare(sizes[b].created); d != 0 {
				return d
			}
			return cmp.Compare(a.ClusterName(), b.ClusterName())
		})
		left := limits.NamespaceEndpoints
		for _, k := range order {
			n := sizes[k].endpoints
			was, limited := s.most[k]
			now := min(n, left)
			left -= now
			put(s.most, k, now, now == n)
			if limited != (now < n) || limited && was != now {
				out = append(out, k)
			}
		}
	}
	clear(s.dirty)
	return out
}

// limit leaves out endpoints of a target beyond its share, and reports them on the target. The sources
// have equal parts of the share, unless they need less.
func (v *view) limit(t *ir.Target, sources []source) []source {
	sizes := make([]int, 0, len(sources))
	for _, s := range sources {
		if s.weight > 0 {
			sizes = append(sizes, len(s.endpoints))
			v.count += len(s.endpoints)
		}
	}
	most, ok := v.shares.most[t.Key]
	if !ok || most >= v.count {
		return sources
	}
	slices.Sort(sizes)
	part, kept := shareOf(sizes, most), 0
	out := slices.Clone(sources)
	for i, s := range out {
		out[i].endpoints = s.endpoints[:min(len(s.endpoints), part)]
		if s.weight > 0 {
			kept += len(out[i].endpoints)
		}
	}
	v.beyond = fmt.Sprintf("%d of its %d endpoints are left out, because the targets of namespace %s have more than %d and it is among the newest", v.count-kept, v.count, t.Key.Namespace, limits.NamespaceEndpoints)
	t.Refused = append(t.Refused, v.beyond)
	return out
}
