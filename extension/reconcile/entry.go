// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"slices"
	"time"
)

const (
	// debounce is the minimum time between two writes of an object. Changes in between are
	// combined into one write.
	debounce = 300 * time.Millisecond

	// unknownStateDelay is the time before a replica replaces a state that it has never
	// desired. It is much longer than the informers of two replicas are apart.
	unknownStateDelay = 2 * time.Second

	// maxBackoff limits the backoff after failures, and between writes of an unchanged desired
	// state.
	maxBackoff = 5 * time.Minute

	// historyLimit is the number of earlier desired states that an entry holds.
	historyLimit = 64
)

// An entry holds the desired and the observed state of an object.
type entry struct {
	// desired is the state that the object should be in. Empty means that the object should not
	// exist.
	desired string

	// past holds the earlier desired states, newest last.
	past []string

	// observed is the current object. Nil means that it does not exist.
	observed *Observed

	// lastChange is the time at which the object entered its current state.
	lastChange time.Time

	// resyncs counts the requests to write the object although it is up to date.
	resyncs int

	// lastWrite is the time of the last attempt to write. backoff is the minimum time until the
	// next one, unless the desired state changes.
	lastWrite time.Time
	backoff   time.Duration

	// fresh reports that the current desired state has not been written by this replica, and
	// has not been observed.
	fresh bool

	// foreign reports that another extension manages the object.
	foreign bool

	// failure is the error of the last write.
	failure string
}

// setDesired sets the desired state, and moves the previous one to the history.
func (e *entry) setDesired(desired string) {
	if e.desired == desired {
		return
	}
	if old := e.desired; old != "" {
		e.past = append(slices.DeleteFunc(e.past, func(s string) bool { return s == old }), old)
		e.past = e.past[max(0, len(e.past)-historyLimit):]
	}
	e.desired, e.fresh, e.backoff = desired, e.state() != desired, 0
}

// observe records the current object.
func (e *entry) observe(s *Observed, at time.Time) {
	if e.state() != s.state() {
		e.lastChange = at
	}
	e.observed = s
	e.fresh = e.fresh && e.state() != e.desired
}

func (e *entry) state() string { return e.observed.state() }

// due returns the time of the next write, and false if no write is necessary.
func (e *entry) due() (time.Time, bool) {
	state := e.state()
	at := e.lastWrite.Add(debounce)
	switch {
	case e.foreign, state == e.desired && e.resyncs == 0:
		return time.Time{}, false
	case state == e.desired:
	case !e.outdated(state):
		at = later(at, e.lastChange.Add(max(e.backoff, unknownStateDelay)))
	case !e.fresh:
		at = later(at, e.lastWrite.Add(e.backoff))
	}
	if e.failure != "" {
		at = later(at, e.lastWrite.Add(e.backoff))
	}
	return at, true
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// outdated reports whether a state is older than the desired one. A state from the history is:
// only a lagging replica writes it. A missing object is outdated if the desired state has never
// been written or seen; otherwise another replica may have deleted the object for a newer reason.
func (e *entry) outdated(state string) bool {
	if state == "" {
		return e.fresh
	}
	return slices.Contains(e.past, state)
}

// increaseBackoff doubles the backoff, because the same state is written again. After a long
// time without writes the backoff starts from the beginning.
func (e *entry) increaseBackoff(at time.Time) {
	if at.Sub(e.lastWrite) > 2*max(e.backoff, unknownStateDelay) {
		e.backoff = 0
	}
	e.backoff = max(debounce, min(2*e.backoff, maxBackoff))
}

// idle reports whether the entry holds no information.
func (e *entry) idle() bool { return e.desired == "" && e.observed == nil }
