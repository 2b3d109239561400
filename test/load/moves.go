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

// A span of time.
type span struct{ from, to time.Time }

// Moves records when control moved a service's addresses to another machine. Requests that are in
// flight at that time may be cut: only one peer of a client's map has an address (tailscale.com
// v1.102.5 net/routemanager, SetScore). Packets of the connection then go to a machine without its
// state, independently of the old machine.
type Moves struct {
	mu    sync.Mutex
	seen  []span
	cause error
}

func (m *Moves) add(s span) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen = append(m.seen, s)
}

// Count returns the number of moves so far.
func (m *Moves) Count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.seen)
}

// Err returns the last error of reading the machine.
func (m *Moves) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cause
}

// Split returns the failures that were not in flight while addresses moved, and those that were.
func (m *Moves) Split(fs []Failure) (lost, moved []Failure) {
	for _, f := range fs {
		if m.during(f) {
			moved = append(moved, f)
		} else {
			lost = append(lost, f)
		}
	}
	return lost, moved
}

// during reports whether a request was in flight while addresses moved.
func (m *Moves) during(f Failure) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.seen {
		if f.Began.After(s.from.Add(-underWay)) && f.Began.Before(s.to.Add(heard)) && !f.Ended.Before(s.from) {
			return true
		}
	}
	return false
}

// Watch records moves until the context ends. The function returns the machine that has the
// service's addresses, or nothing if there is none.
func (m *Moves) Watch(ctx context.Context, primary func(context.Context) (string, error)) {
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
			m.mu.Lock()
			m.cause = err
			m.mu.Unlock()
		case current != "":
			if last != "" && current != last {
				m.add(span{from: lastAt, to: time.Now()})
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
