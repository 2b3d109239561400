// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A list is the answer of one list call, shared by all who need it.
type list[T any] struct {
	load func(ctx context.Context) ([]T, error)

	flight singleflight.Group

	mu         sync.Mutex
	items      []T
	at         time.Time // Zero when there is none.
	generation int       // Counts writes.
}

// get returns the list if it is no older than maxAge, else a new one. Callers
// that come meanwhile share one call. Nobody may change the items.
func (l *list[T]) get(ctx context.Context, maxAge time.Duration) ([]T, error) {
	l.mu.Lock()
	items, at, generation := l.items, l.at, l.generation
	l.mu.Unlock()
	if !at.IsZero() && time.Since(at) <= maxAge {
		return items, nil
	}
	// A call that began before a write must not answer who comes after it.
	ch := l.flight.DoChan(strconv.Itoa(generation), func() (any, error) {
		// The call must outlive the one caller that happened to start it.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
		defer cancel()
		start := time.Now()
		items, err := l.load(ctx)
		if err != nil {
			return nil, err
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.generation == generation {
			l.items, l.at = items, start
		}
		return items, nil
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case r := <-ch:
		if r.Err != nil {
			return nil, r.Err
		}
		items, ok := r.Val.([]T)
		if !ok {
			return nil, errors.New("a list has items of another type")
		}
		return items, nil
	}
}

// expire makes the next get ask anew.
func (l *list[T]) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at = time.Time{}
	l.generation++
}
