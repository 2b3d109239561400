// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"container/heap"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/internal/fair"
)

// A schedule holds the endpoints of each namespace, and shares the concurrent probes among
// namespaces: endpoints that do not answer hold up their own namespace's probes alone.
type schedule struct {
	slots  *fair.Shares
	queues map[string]*queue
}

func newSchedule(slots int) *schedule {
	return &schedule{slots: fair.NewShares(slots), queues: map[string]*queue{}}
}

// add adds an endpoint that is not in the schedule.
func (s *schedule) add(e *endpoint) {
	q := s.queues[e.check.Namespace]
	if q == nil {
		q = &queue{}
		s.queues[e.check.Namespace] = q
	}
	heap.Push(q, e)
}

// remove removes an endpoint, if the schedule has it.
func (s *schedule) remove(e *endpoint) {
	q := s.queues[e.check.Namespace]
	if q == nil || e.at < 0 {
		return
	}
	heap.Remove(q, e.at)
	s.tidy(e.check.Namespace)
}

// start removes and returns the endpoint to probe: that of the namespace with the fewest probes, and
// among these the one that is overdue for the longest time. Nil if there is none. The caller calls
// finish after the probe.
func (s *schedule) start(now time.Time) *endpoint {
	var e *endpoint
	for n, q := range s.queues {
		first := (*q)[0]
		if first.next.After(now) || !s.slots.Allows(n) {
			continue
		}
		if e == nil || s.slots.Held(n) < s.slots.Held(e.check.Namespace) ||
			s.slots.Held(n) == s.slots.Held(e.check.Namespace) && first.next.Before(e.next) {
			e = first
		}
	}
	if e == nil {
		return nil
	}
	s.remove(e)
	s.slots.Take(e.check.Namespace)
	return e
}

// finish releases the slot of a probe.
func (s *schedule) finish(e *endpoint) { s.slots.Release(e.check.Namespace) }

// next returns the time of the next probe that may begin before any other ends, or the limit if that
// is earlier.
func (s *schedule) next(limit time.Time) time.Time {
	for n, q := range s.queues {
		if first := (*q)[0]; first.next.Before(limit) && s.slots.Allows(n) {
			limit = first.next
		}
	}
	return limit
}

// overdue returns the delay of the most overdue probe.
func (s *schedule) overdue(now time.Time) time.Duration {
	out := time.Duration(0)
	for _, q := range s.queues {
		out = max(out, now.Sub((*q)[0].next))
	}
	return out
}

// size returns the number of endpoints.
func (s *schedule) size() int {
	n := 0
	for _, q := range s.queues {
		n += q.Len()
	}
	return n
}

// tidy removes the queue of a namespace without endpoints.
func (s *schedule) tidy(namespace string) {
	if s.queues[namespace].Len() == 0 {
		delete(s.queues, namespace)
	}
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
	q[i].at, q[j].at = i, j
}

// Push implements heap.Interface.
func (q *queue) Push(x any) {
	if e, ok := x.(*endpoint); ok {
		e.at = len(*q)
		*q = append(*q, e)
	}
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	e.at = -1
	return e
}
