// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"sync"
	"time"
)

const (
	// watchEvery is the interval at which the machine with a service's addresses is read from the
	// tailnet.
	watchEvery = 100 * time.Millisecond

	// heard is how long a client may take to learn of a move of the addresses, on a busy machine.
	heard = 3 * time.Second

	// underWay is how long a request may take on a busy machine. A request that began earlier
	// before a move was lost for another reason.
	underWay = 2 * time.Second
)

// A Span is a span of time. A span without an end has not ended.
type Span struct{ Began, Ended time.Time }

// Overlaps reports whether spans overlap.
func (s Span) Overlaps(o Span) bool {
	return (o.Ended.IsZero() || s.Began.Before(o.Ended)) && (s.Ended.IsZero() || o.Began.Before(s.Ended))
}

// An event is a span in which requests in flight may be cut, unless they began too early for it.
type event struct {
	Span

	earliest time.Time
}

// Events are times in which a request in flight may be cut, because nobody can answer it.
type Events struct {
	mu    sync.Mutex
	all   []event
	cause error
}

// Add adds an event.
func (e *Events) Add(s Span) { e.add(event{Span: s}) }

func (e *Events) add(v event) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, v)
	return len(e.all) - 1
}

// Count returns the number of events so far.
func (e *Events) Count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.all)
}

// During runs a function, whose whole time is an event.
func (e *Events) During(fn func() error) error {
	i := e.add(event{Span: Span{Began: time.Now()}})
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.all[i].Ended = time.Now()
	}()
	return fn()
}

// Split returns the lost requests that no event excuses, and those that were cut.
func (e *Events) Split(fs []Failure) (lost, cut []Failure) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, f := range fs {
		if e.cuts(f) {
			cut = append(cut, f)
		} else {
			lost = append(lost, f)
		}
	}
	return lost, cut
}

func (e *Events) cuts(f Failure) bool {
	for _, v := range e.all {
		if f.Began.After(v.earliest) && v.Overlaps(Span{Began: f.Began, Ended: f.Ended}) {
			return true
		}
	}
	return false
}

// Err returns the last error of reading the machine.
func (e *Events) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cause
}

// WatchMoves records when control moved a service's addresses to another machine, until the context
// ends: only one peer of a client's map has an address (tailscale.com v1.102.5 net/routemanager,
// SetScore). Packets of a connection then go to a machine without its state, independently of the
// old machine. The function returns the machine that has the service's addresses, or nothing if
// there is none.
func (e *Events) WatchMoves(ctx context.Context, primary func(context.Context) (string, error)) {
	t := time.NewTicker(watchEvery)
	defer t.Stop()
	last, lastAt := "", time.Now()
	for {
		began := time.Now()
		current, err := primary(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			e.mu.Lock()
			e.cause = err
			e.mu.Unlock()
		case current != "":
			if last != "" && current != last {
				e.add(moveEvent(lastAt, time.Now()))
			}
			last, lastAt = current, began
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// moveEvent returns the event of a move between two times.
func moveEvent(from, to time.Time) event {
	return event{Span: Span{Began: from, Ended: to.Add(heard)}, earliest: from.Add(-underWay)}
}
