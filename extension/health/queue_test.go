// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"
)

// TestSchedule compares a schedule with a search through all endpoints, for random probes.
func TestSchedule(t *testing.T) {
	const slots, namespaces, steps = 8, 6, 5000
	r := rand.New(rand.NewPCG(1, 2))
	s := newSchedule(slots)
	at := time.Unix(1000, 0)
	var waiting, probed []*endpoint
	for i := range 40 {
		e := &endpoint{check: Check{Namespace: strconv.Itoa(i % namespaces)}, next: at.Add(time.Duration(r.IntN(1000)) * time.Millisecond)}
		s.add(e)
		waiting = append(waiting, e)
	}
	for range steps {
		var due []*endpoint
		next := at.Add(time.Hour)
		for _, e := range waiting {
			if !s.slots.Allows(e.check.Namespace) {
				continue
			}
			if !e.next.After(at) {
				due = append(due, e)
			}
			if e.next.Before(next) {
				next = e.next
			}
		}
		if got := s.next(at.Add(time.Hour)); !got.Equal(next) {
			t.Fatalf("next(...): want %s, got %s", next, got)
		}
		active := func(e *endpoint) int { return s.slots.Held(e.check.Namespace) }
		e := s.start(at)
		switch {
		case e == nil && len(due) > 0:
			t.Fatalf("start(...): want one of %d endpoints that are due", len(due))
		case e != nil && !slices.Contains(due, e):
			t.Fatal("start(...): want an endpoint that is due, of a namespace that may probe")
		case e != nil:
			s.slots.Release(e.check.Namespace)
			if slices.ContainsFunc(due, func(o *endpoint) bool {
				return active(o) < active(e) || active(o) == active(e) && o.next.Before(e.next)
			}) {
				t.Fatal("start(...): another endpoint comes first")
			}
			s.slots.Take(e.check.Namespace)
			waiting = slices.DeleteFunc(waiting, func(o *endpoint) bool { return o == e })
			probed = append(probed, e)
		}
		if len(probed) > 0 && (e == nil || r.IntN(3) == 0) {
			i := r.IntN(len(probed))
			e := probed[i]
			probed = slices.Delete(probed, i, i+1)
			s.finish(e)
			e.next = at.Add(time.Duration(r.IntN(1000)) * time.Millisecond)
			s.add(e)
			waiting = append(waiting, e)
		}
		if r.IntN(10) == 0 {
			e := waiting[r.IntN(len(waiting))]
			s.remove(e)
			s.remove(e)
			s.add(e)
		}
		at = at.Add(time.Duration(r.IntN(20)) * time.Millisecond)
	}
	if got := s.size(); got != len(waiting) {
		t.Errorf("size(): want %d, got %d", len(waiting), got)
	}
}

// TestScheduleCost checks that namespaces without a due probe cost nothing.
func TestScheduleCost(t *testing.T) {
	s := newSchedule(8)
	at := time.Unix(1000, 0)
	for i := range 1000 {
		s.add(&endpoint{check: Check{Namespace: strconv.Itoa(i)}, next: at.Add(time.Hour)})
	}
	due := &endpoint{check: Check{Namespace: "due"}, next: at}
	s.add(due)
	visited := 0
	s.order.each(func(l *line) bool {
		visited++
		return !l.next().After(at)
	})
	if visited > 3 {
		t.Errorf("a search for due probes has looked at %d of 1001 namespaces", visited)
	}
	if got := s.start(at); got != due {
		t.Errorf("start(...): want the endpoint that is due, got %v", got)
	}
}
