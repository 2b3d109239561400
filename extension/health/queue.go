// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"container/heap"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/internal/fair"
)

// A schedule holds the endpoints of each namespace, and shares the concurrent probes among
// namespaces: endpoints that do not answer hold up their own namespace's probes alone. Its work
// depends on the number of namespaces whose probes are due, and not on that of all.
type schedule struct {
	slots *fair.Shares
	lines map[string]*line
	order lines
}

// A line holds the endpoints of a namespace. It is never empty in a schedule.
type line struct {
	namespace string
	endpoints queue

	// index is the line's index in the schedule's order.
	index int
}

// next returns the time of the line's next probe.
func (l *line) next() time.Time { return l.endpoints[0].next }

func newSchedule(slots int) *schedule {
	return &schedule{slots: fair.NewShares(slots), lines: map[string]*line{}}
}

// add adds an endpoint that is not in the schedule.
func (s *schedule) add(e *endpoint) {
	l := s.lines[e.check.Namespace]
	if l == nil {
		l = &line{namespace: e.check.Namespace, endpoints: queue{e}}
		e.index = 0
		s.lines[l.namespace] = l
		heap.Push(&s.order, l)
		return
	}
	heap.Push(&l.endpoints, e)
	heap.Fix(&s.order, l.index)
}

// remove removes an endpoint, if the schedule has it.
func (s *schedule) remove(e *endpoint) {
	l := s.lines[e.check.Namespace]
	if l == nil || e.index < 0 {
		return
	}
	if len(l.endpoints) == 1 {
		heap.Remove(&s.order, l.index)
		delete(s.lines, l.namespace)
		e.index = -1
		return
	}
	heap.Remove(&l.endpoints, e.index)
	heap.Fix(&s.order, l.index)
}

// start removes and returns the endpoint to probe: that of the namespace with the fewest probes, and
// among these the one that is overdue for the longest time. Nil if there is none. The caller calls
// finish after the probe.
func (s *schedule) start(at time.Time) *endpoint {
	var first *line
	s.order.each(func(l *line) bool {
		if l.next().After(at) {
			return false
		}
		if s.slots.Allows(l.namespace) && (first == nil || s.before(l, first)) {
			first = l
		}
		return true
	})
	if first == nil {
		return nil
	}
	e := first.endpoints[0]
	s.remove(e)
	s.slots.Take(first.namespace)
	return e
}

// before reports whether a line's probe comes before another's, if both are due.
func (s *schedule) before(a, b *line) bool {
	x, y := s.slots.Held(a.namespace), s.slots.Held(b.namespace)
	return x < y || x == y && a.next().Before(b.next())
}

// finish releases the slot of a probe.
func (s *schedule) finish(e *endpoint) { s.slots.Release(e.check.Namespace) }

// next returns the time of the next probe that may begin before any other ends, or the limit if that
// is earlier.
func (s *schedule) next(limit time.Time) time.Time {
	s.order.each(func(l *line) bool {
		if !l.next().Before(limit) {
			return false
		}
		if s.slots.Allows(l.namespace) {
			limit = l.next()
		}
		return true
	})
	return limit
}

// overdue returns the delay of the most overdue probe.
func (s *schedule) overdue(at time.Time) time.Duration {
	if len(s.order) == 0 {
		return 0
	}
	return max(at.Sub(s.order[0].next()), 0)
}

// size returns the number of endpoints.
func (s *schedule) size() int {
	n := 0
	for _, l := range s.order {
		n += len(l.endpoints)
	}
	return n
}

// lines are in the order of their next probes. They are a heap.Interface.
type lines []*line

// each calls fn with lines, each before all that are later and below it in the heap. If fn returns
// false, those are left out.
func (ls lines) each(fn func(*line) bool) { ls.below(0, fn) }

func (ls lines) below(i int, fn func(*line) bool) {
	if i < len(ls) && fn(ls[i]) {
		ls.below(2*i+1, fn)
		ls.below(2*i+2, fn)
	}
}

// Len implements heap.Interface.
func (ls lines) Len() int { return len(ls) }

// Less implements heap.Interface.
func (ls lines) Less(i, j int) bool { return ls[i].next().Before(ls[j].next()) }

// Swap implements heap.Interface.
func (ls lines) Swap(i, j int) {
	ls[i], ls[j] = ls[j], ls[i]
	ls[i].index, ls[j].index = i, j
}

// Push implements heap.Interface.
func (ls *lines) Push(x any) {
	if l, ok := x.(*line); ok {
		l.index = len(*ls)
		*ls = append(*ls, l)
	}
}

// Pop implements heap.Interface.
func (ls *lines) Pop() any {
	last := len(*ls) - 1
	l := (*ls)[last]
	(*ls)[last] = nil
	*ls = (*ls)[:last]
	return l
}

// A queue holds endpoints in the order of their next probe. It is a heap.Interface.
type queue []*endpoint

// Len implements heap.Interface.
func (q queue) Len() int { return len(q) }

// Less implements heap.Interface.
func (q queue) Less(i, j int) bool { return q[i].next.Before(q[j].next) }

// Swap implements heap.Interface.
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push implements heap.Interface.
func (q *queue) Push(x any) {
	if e, ok := x.(*endpoint); ok {
		e.index = len(*q)
		*q = append(*q, e)
	}
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	e.index = -1
	return e
}
