// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/limits"
)

// endpointShares decide how many endpoints the targets of a namespace have: those of the oldest objects
// have all, and the others what is left of the limit. The result depends on the objects alone, so that
// all replicas decide alike.
type endpointShares struct {
	namespaces map[string]*endpointShare

	// most are the numbers of endpoints of those targets that do not have all.
	most map[ir.TargetKey]int

	// dirty are the namespaces whose sizes have changed.
	dirty map[string]struct{}
}

// An endpointShare has the sizes of a namespace's targets.
type endpointShare struct {
	sizes map[ir.TargetKey]endpointSize

	// total is the number of endpoints without a limit, and limited reports that some targets do not
	// have all.
	total   int
	limited bool

	// order are the targets by age. Nil if targets have come or gone since, and if it was never needed.
	order []ir.TargetKey
}

// An endpointSize is the number of endpoints that a target has without a limit.
type endpointSize struct {
	created   time.Time
	endpoints int
}

func newEndpointShares() *endpointShares {
	return &endpointShares{namespaces: map[string]*endpointShare{}, most: map[ir.TargetKey]int{}, dirty: map[string]struct{}{}}
}

// set replaces the size of a target. Without endpoints it has none.
func (s *endpointShares) set(k ir.TargetKey, n endpointSize) {
	share := s.namespaces[k.Namespace]
	if share == nil {
		share = &endpointShare{sizes: map[ir.TargetKey]endpointSize{}}
	}
	previous := share.sizes[k]
	if previous.endpoints == n.endpoints && previous.created.Equal(n.created) {
		return
	}
	s.namespaces[k.Namespace], s.dirty[k.Namespace] = share, struct{}{}
	share.total += n.endpoints - previous.endpoints
	if previous.endpoints == 0 || n.endpoints == 0 || !previous.created.Equal(n.created) {
		share.order = nil
	}
	put(share.sizes, k, n, n.endpoints == 0)
	if n.endpoints == 0 {
		delete(s.most, k)
	}
	if len(share.sizes) == 0 {
		delete(s.namespaces, k.Namespace)
	}
}

// settle decides again, and returns the targets that may have another number of endpoints than before. A
// change in a namespace within the limit costs nothing.
func (s *endpointShares) settle() []ir.TargetKey {
	var out []ir.TargetKey
	for namespace := range s.dirty {
		share := s.namespaces[namespace]
		if share == nil || share.total <= limits.NamespaceEndpoints && !share.limited {
			continue
		}
		share.limited = false
		remaining := limits.NamespaceEndpoints
		for _, k := range share.byAge() {
			n := share.sizes[k].endpoints
			previous, limited := s.most[k]
			current := min(n, remaining)
			remaining -= current
			share.limited = share.limited || current < n
			put(s.most, k, current, current == n)
			if limited != (current < n) || limited && previous != current {
				out = append(out, k)
			}
		}
	}
	clear(s.dirty)
	return out
}

// byAge returns the targets, the oldest first.
func (s *endpointShare) byAge() []ir.TargetKey {
	if s.order == nil {
		s.order = slices.SortedFunc(maps.Keys(s.sizes), func(a, b ir.TargetKey) int {
			if d := s.sizes[a].created.Compare(s.sizes[b].created); d != 0 {
				return d
			}
			return cmp.Compare(a.ClusterName(), b.ClusterName())
		})
	}
	return s.order
}

// limit leaves out endpoints of a target beyond its share, and reports them on the target. The sources
// have equal parts of the share, unless they need less.
func (v *view) limit(t *ir.Target, sources []source) []source {
	for _, s := range sources {
		if s.weight > 0 {
			v.count += len(s.endpoints)
		}
	}
	most, ok := v.shares.most[t.Key]
	if !ok || most >= v.count {
		return sources
	}
	var sizes []int
	for _, s := range sources {
		if s.weight > 0 {
			sizes = append(sizes, len(s.endpoints))
		}
	}
	slices.Sort(sizes)
	part, retained := shareOf(sizes, most), 0
	out := slices.Clone(sources)
	for i, s := range out {
		out[i].endpoints = s.endpoints[:min(len(s.endpoints), part)]
		if s.weight > 0 {
			retained += len(out[i].endpoints)
		}
	}
	v.beyond = fmt.Sprintf("%d of its %d endpoints are left out, because the targets of namespace %s have more than %d and it is among the newest", v.count-retained, v.count, t.Key.Namespace, limits.NamespaceEndpoints)
	t.Refused = append(t.Refused, v.beyond)
	return out
}
