// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package keep

import (
	"slices"
	"time"
)

const (
	// debounce is the least time between two writes of an object: what changes
	// meanwhile is one write.
	debounce = 300 * time.Millisecond

	// patience with a state that was never wanted here, before it is replaced: far
	// longer than informers of replicas are apart.
	patience = 2 * time.Second

	// longest is what waits grow to, where an object is written again although
	// nothing new is wanted, and after failures.
	longest = 5 * time.Minute

	// memory is how many states that were wanted are remembered for each object.
	memory = 64
)

// An entry is what is known of one object.
type entry struct {
	// want is the state to have. Empty is none: no object.
	want string

	// past are other states that were wanted before, the newest last.
	past []string

	// seen is the object as it is. Nil if there is none.
	seen *Seen

	// since when it is in that state.
	since time.Time

	// again counts requests for a write although the object is as wanted.
	again int

	// written is when a write was last tried, and wait how long the next must wait
	// that nothing new asks for.
	written time.Time
	wait    time.Duration

	// fresh reports that the state has been neither written here nor seen since it is
	// wanted.
	fresh bool

	// others reports that it is another extension's.
	others bool

	// failure of the last write.
	failure string
}

// wants notes the state that is wanted now.
func (e *entry) wants(want string) {
	if e.want == want {
		return
	}
	if old := e.want; old != "" {
		e.past = append(slices.DeleteFunc(e.past, func(s string) bool { return s == old }), old)
		e.past = e.past[max(0, len(e.past)-memory):]
	}
	e.want, e.fresh, e.wait = want, e.have() != want, 0
}

// sees notes the object as it is.
func (e *entry) sees(s *Seen, now time.Time) {
	if e.have() != s.state() {
		e.since = now
	}
	e.seen = s
	e.fresh = e.fresh && e.have() != e.want
}

func (e *entry) have() string { return e.seen.state() }

// due says when to write, or that there is nothing to.
func (e *entry) due() (time.Time, bool) {
	have := e.have()
	at := e.written.Add(debounce)
	switch {
	case e.others, have == e.want && e.again == 0:
		return time.Time{}, false
	case have == e.want:
	case !e.known(have):
		at = later(at, e.since.Add(max(e.wait, patience)))
	case !e.fresh:
		at = later(at, e.written.Add(e.wait))
	}
	if e.failure != "" {
		at = later(at, e.written.Add(e.wait))
	}
	return at, true
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// known reports whether a state is older than what is wanted: nobody writes a state that
// was wanted here before but who lags. That there is no object is older than a state
// that there never was, and may be newer than one that there was.
func (e *entry) known(state string) bool {
	if state == "" {
		return e.fresh
	}
	return slices.Contains(e.past, state)
}

// grow the wait: the same is written again. What was long ago is forgotten.
func (e *entry) grow(now time.Time) {
	if now.Sub(e.written) > 2*max(e.wait, patience) {
		e.wait = 0
	}
	e.wait = max(debounce, min(2*e.wait, longest))
}

// idle reports that there is nothing to remember.
func (e *entry) idle() bool { return e.want == "" && e.seen == nil }
