// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package fair

import (
	"context"
	"slices"
	"sync"
)

// Slots are Shares for which goroutines wait. The owner with the fewest slots is next, and within an
// owner the first that waits.
type Slots struct {
	mu      sync.Mutex
	shares  *Shares
	waiting map[string][]*waiter
}

// A waiter waits in the lines of all of its owners.
type waiter struct {
	// granted receives the owner whose slot the waiter has.
	granted chan string

	// done reports that the waiter has a slot or has given up. Lines may still have it.
	done bool
}

// NewSlots returns a pool of slots.
func NewSlots(size int) *Slots {
	return &Slots{shares: NewShares(size), waiting: map[string][]*waiter{}}
}

// Acquire waits for a slot of one of the owners, at least one, and returns a function that releases
// it. It returns the context's error if that ends first.
func (s *Slots) Acquire(ctx context.Context, owners ...string) (release func(), err error) {
	w := &waiter{granted: make(chan string, 1)}
	s.mu.Lock()
	for _, o := range owners {
		s.waiting[o] = append(s.waiting[o], w)
	}
	s.grant()
	s.mu.Unlock()
	select {
	case o := <-w.granted:
		return func() { s.release(o) }, nil
	case <-ctx.Done():
		s.abandon(w, owners)
		return nil, ctx.Err()
	}
}

func (s *Slots) release(owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shares.Release(owner)
	s.grant()
}

// abandon removes a waiter, and returns a slot that it got meanwhile.
func (s *Slots) abandon(w *waiter, owners []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case o := <-w.granted:
		s.shares.Release(o)
		s.grant()
	default:
		w.done = true
	}
	for _, o := range owners {
		s.waiting[o] = slices.DeleteFunc(s.waiting[o], func(x *waiter) bool { return x.done })
		if len(s.waiting[o]) == 0 {
			delete(s.waiting, o)
		}
	}
}

// grant gives out slots while an owner that waits may take one.
func (s *Slots) grant() {
	for {
		next, found := "", false
		for o, line := range s.waiting {
			for len(line) > 0 && line[0].done {
				line[0] = nil
				line = line[1:]
			}
			if s.waiting[o] = line; len(line) == 0 {
				delete(s.waiting, o)
				continue
			}
			less := !found || s.shares.Held(o) < s.shares.Held(next) || s.shares.Held(o) == s.shares.Held(next) && o < next
			if s.shares.Allows(o) && less {
				next, found = o, true
			}
		}
		if !found {
			return
		}
		w := s.waiting[next][0]
		w.done = true
		s.shares.Take(next)
		w.granted <- next
	}
}
