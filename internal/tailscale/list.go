// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A list is the response of one list call, which all callers share. Writes update it, so that they
// need no further list call.
type list[T any] struct {
	// load requests the items. The time is when the API answered by its own clock, or zero if the
	// response has no time.
	load func(ctx context.Context) ([]T, time.Time, error)

	// match reports whether the key identifies the item.
	match func(item T, key string) bool

	// clock determines the age of the list, not the time when the API answered.
	clock clock.PassiveClock

	flight singleflight.Group

	mu         sync.Mutex
	current    page[T]
	generation int // Counts how often the list became invalid.
	loading    int // Calls in progress.

	// joinable is when the newest of the calls in progress began, by the local clock. It is zero if
	// callers may no longer join that call. The call's number is the number of all calls.
	joinable time.Time
	number   int

	// changes are the changes since the oldest of the calls in progress began: the responses may
	// include them or not.
	changes []change[T]

	// writing holds the keys of items that are being written.
	writing map[string]*writers
}

// A page is the state of a list at one time.
type page[T any] struct {
	items      []T
	start      time.Time // When the call began, by the local clock. Zero if there was no call.
	serverTime time.Time // When the API answered, by its clock.
}

// A fold applies a write to an item. It receives nil if the list does not have the item, and
// returns nil to remove the item. It must not modify its argument.
type fold[T any] func(old *T) *T

// replaced returns the fold of a write whose response contains the item.
func replaced[T any](item T) fold[T] { return func(*T) *T { return &item } }

// removed is the fold of a deletion.
func removed[T any](*T) *T { return nil }

// edited returns the fold of a write that changes a part of an item.
func edited[T any](edit func(*T)) fold[T] {
	return func(old *T) *T {
		if old == nil {
			return nil
		}
		item := *old
		edit(&item)
		return &item
	}
}

type change[T any] struct {
	key  string
	fold fold[T]
}

// writers counts the writes of one item. The order of concurrent writes is unknown.
type writers struct {
	n          int
	overlapped bool
}

// get returns the list if it is no older than maxAge, and otherwise requests it. It also returns
// when the API answered, or when the request began by the local clock if the response has no time.
// Concurrent callers share one call if its result is recent enough for them. Callers must not
// modify the items.
func (l *list[T]) get(ctx context.Context, maxAge time.Duration) ([]T, time.Time, error) {
	l.mu.Lock()
	p, generation := l.current, l.generation
	if !p.start.IsZero() && l.clock.Since(p.start) <= maxAge {
		l.mu.Unlock()
		return p.items, p.serverTime, nil
	}
	// The response of a call may be as old as the call. So a call that began too long ago, or
	// before the list became invalid, is not recent enough.
	if l.joinable.IsZero() || l.clock.Since(l.joinable) > maxAge {
		l.number++
		l.joinable = l.clock.Now()
	}
	number, start := l.number, l.joinable
	l.mu.Unlock()
	ch := l.flight.DoChan(strconv.Itoa(number), func() (any, error) {
		// Other callers may use the call after the caller that started it is gone.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), RequestTimeout)
		defer cancel()
		return l.reload(ctx, generation, number, start)
	})
	select {
	case <-ctx.Done():
		return nil, time.Time{}, classify(ctx.Err(), "", false)
	case r := <-ch:
		if r.Err != nil {
			return nil, time.Time{}, r.Err
		}
		p, ok := r.Val.(page[T])
		if !ok {
			return nil, time.Time{}, errors.New("a list has items of another type")
		}
		return p.items, p.serverTime, nil
	}
}

// known returns the items of the last list, of any age, without a call. Callers must not modify them.
func (l *list[T]) known() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.current.items
}

func (l *list[T]) reload(ctx context.Context, generation, number int, start time.Time) (page[T], error) {
	l.mu.Lock()
	l.loading++
	seen := len(l.changes)
	l.mu.Unlock()
	items, serverTime, err := l.load(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.number == number {
		l.joinable = time.Time{}
	}
	missed := l.changes[seen:]
	if l.loading--; l.loading == 0 {
		l.changes = nil
	}
	if err != nil {
		return page[T]{}, err
	}
	if serverTime.IsZero() {
		serverTime = start
	}
	p := page[T]{items: items, start: start, serverTime: serverTime}
	for _, c := range missed {
		p.items = l.folded(p.items, c)
	}
	// A call that began later may have returned earlier.
	if l.generation == generation && !p.start.Before(l.current.start) {
		l.current = p
	}
	return p, nil
}

// folded returns a copy of the items with the change applied.
func (l *list[T]) folded(items []T, c change[T]) []T {
	i := slices.IndexFunc(items, func(item T) bool { return l.match(item, c.key) })
	if i < 0 {
		if item := c.fold(nil); item != nil {
			return append(slices.Clip(items), *item)
		}
		return items
	}
	out := slices.Clone(items)
	item := c.fold(&out[i])
	if item == nil {
		return slices.Delete(out, i, i+1)
	}
	out[i] = *item
	return out
}

// write runs a write of the item with the key and updates the list. A write with an unknown result
// makes the list invalid.
func (l *list[T]) write(key string, send func() (fold[T], error)) error {
	done := l.begin(key)
	f, err := send()
	overlapped := done()
	if err != nil {
		if !hadNoEffect(err) {
			l.expire()
		}
		return err
	}
	if overlapped {
		l.expire()
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c := change[T]{key: key, fold: f}
	if l.loading > 0 {
		l.changes = append(l.changes, c)
	}
	if !l.current.start.IsZero() {
		l.current.items = l.folded(l.current.items, c)
	}
	return nil
}

// begin records a write. The returned function ends it and reports whether another write of the
// same item was in progress at the same time.
func (l *list[T]) begin(key string) func() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.writing[key]
	if w == nil {
		w = &writers{}
		if l.writing == nil {
			l.writing = map[string]*writers{}
		}
		l.writing[key] = w
	}
	w.n++
	w.overlapped = w.overlapped || w.n > 1
	return func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		if w.n--; w.n == 0 {
			delete(l.writing, key)
		}
		return w.overlapped
	}
}

// hadNoEffect reports whether an error means that a write had no effect, and that the cached item
// may still be correct.
func hadNoEffect(err error) bool {
	switch ClassOf(err) {
	case ClassUnauthorized, ClassForbidden, ClassTailnetNotFound, ClassRateLimited, ClassInvalid:
		return true
	case ClassNotFound, ClassConflict, ClassPreconditionFailed, ClassUnavailable:
	}
	return false
}

// expire makes the next get send a request.
func (l *list[T]) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current = page[T]{}
	l.joinable = time.Time{}
	l.generation++
}

// age returns the age of the list, and whether there is a list.
func (l *list[T]) age() (time.Duration, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current.start.IsZero() {
		return 0, false
	}
	return l.clock.Since(l.current.start), true
}
