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

// A list is the answer of one list call, shared by all who need it. Writes keep
// it in line with the tailnet, so that they cost no list call.
type list[T any] struct {
	// load asks for the items. The time is the API's own at its answer, zero if
	// the answer has none.
	load func(ctx context.Context) ([]T, time.Time, error)

	// is reports whether a key means the item.
	is func(item T, key string) bool

	// clock says how old the list is. It never says when it was made.
	clock clock.PassiveClock

	flight singleflight.Group

	mu         sync.Mutex
	current    page[T]
	generation int // Counts what made the list worthless.
	loading    int // Calls under way.

	// joinable is when the newest of the calls under way began, by our clock: zero if
	// nobody may join it any more. Its number is that of all calls.
	joinable time.Time
	number   int

	// changes since the first of the calls under way began: their answers may
	// or may not have them.
	changes []change[T]

	// writing has the keys that are being written now.
	writing map[string]*writers
}

// A page is a list as it was at one time.
type page[T any] struct {
	items []T
	asked time.Time // By our clock, when the call began. Zero if there is none.
	made  time.Time // By the API's clock, when it answered.
}

// A fold makes of an item, nil if the list lacks it, what a write made of it,
// nil if the list is to lack it. It must not change the item.
type fold[T any] func(old *T) *T

// replaced is the fold of a write that answers with the item.
func replaced[T any](item T) fold[T] { return func(*T) *T { return &item } }

// removed is the fold of a deletion.
func removed[T any](*T) *T { return nil }

// edited is the fold of a write that changes a part of an item.
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

// writers of one item. Of writes that overlap nobody knows which was the last.
type writers struct {
	n          int
	overlapped bool
}

// get returns the list if it is no older than maxAge, else a new one, and the
// API's time when it was made, or our time of the request if the answer has none.
// Callers that come meanwhile share one call, if what it brings is no older than they
// want. Nobody may change the items.
func (l *list[T]) get(ctx context.Context, maxAge time.Duration) ([]T, time.Time, error) {
	l.mu.Lock()
	p, generation := l.current, l.generation
	if !p.asked.IsZero() && l.clock.Since(p.asked) <= maxAge {
		l.mu.Unlock()
		return p.items, p.made, nil
	}
	// The answer of a call may be as old as the call, so one that began too long ago does
	// not do, nor one from before the list became worthless.
	if l.joinable.IsZero() || l.clock.Since(l.joinable) > maxAge {
		l.number++
		l.joinable = l.clock.Now()
	}
	number, asked := l.number, l.joinable
	l.mu.Unlock()
	ch := l.flight.DoChan(strconv.Itoa(number), func() (any, error) {
		// The call must outlive the one caller that happened to start it.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), RequestTimeout)
		defer cancel()
		return l.reload(ctx, generation, number, asked)
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
		return p.items, p.made, nil
	}
}

func (l *list[T]) reload(ctx context.Context, generation, number int, asked time.Time) (page[T], error) {
	l.mu.Lock()
	l.loading++
	seen := len(l.changes)
	l.mu.Unlock()
	items, made, err := l.load(ctx)
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
	if made.IsZero() {
		made = asked
	}
	p := page[T]{items: items, asked: asked, made: made}
	for _, c := range missed {
		p.items = l.folded(p.items, c)
	}
	// A call that began later may have been answered sooner.
	if l.generation == generation && !p.asked.Before(l.current.asked) {
		l.current = p
	}
	return p, nil
}

// folded returns a copy of the items with a change.
func (l *list[T]) folded(items []T, c change[T]) []T {
	i := slices.IndexFunc(items, func(item T) bool { return l.is(item, c.key) })
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

// write carries out a write of the item with the key and brings the list in
// line with it. A write whose end nobody knows makes the list worthless.
func (l *list[T]) write(key string, do func() (fold[T], error)) error {
	done := l.begin(key)
	f, err := do()
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
	if !l.current.asked.IsZero() {
		l.current.items = l.folded(l.current.items, c)
	}
	return nil
}

// begin notes a write; the returned function ends it and reports whether another
// one of the same item was under way at the same time.
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

// hadNoEffect reports whether an error says that a write did nothing, and that what
// was known of the item need not be wrong.
func hadNoEffect(err error) bool {
	switch ClassOf(err) {
	case ClassUnauthorized, ClassForbidden, ClassTailnetNotFound, ClassRateLimited, ClassInvalid:
		return true
	case ClassNotFound, ClassConflict, ClassPreconditionFailed, ClassUnavailable:
	}
	return false
}

// expire makes the next get ask again.
func (l *list[T]) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current = page[T]{}
	l.joinable = time.Time{}
	l.generation++
}

// age of the list, and whether there is one.
func (l *list[T]) age() (time.Duration, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current.asked.IsZero() {
		return 0, false
	}
	return l.clock.Since(l.current.asked), true
}
