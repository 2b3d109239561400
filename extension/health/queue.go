// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"container/heap"
)

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

// remove removes an endpoint, if the queue has it.
func (q *queue) remove(e *endpoint) {
	if e.at >= 0 {
		heap.Remove(q, e.at)
	}
}
