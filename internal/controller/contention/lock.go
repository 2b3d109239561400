// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package contention

import (
	"context"
	"slices"
	"sync"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// scopeLocks has a lock for each scope that was ever locked. Controllers of several kinds write the
// same settings, so they share it.
var scopeLocks = struct {
	sync.Mutex

	locks map[string]chan struct{}
}{locks: map[string]chan struct{}{}}

// Lock excludes the contenders of this process that share a scope with c until unlock is called, so
// that nothing changes between c's read and its write: Tailscale's API does not detect a write in
// between.
func Lock(ctx context.Context, c Contender) (unlock func(), err error) {
	// All contenders lock in the same order, which prevents deadlocks.
	scopes := slices.Compact(slices.Sorted(slices.Values(c.Scopes)))
	var locks []chan struct{}
	unlock = func() {
		for _, l := range locks {
			<-l
		}
	}
	for _, s := range scopes {
		l := scopeLock(s)
		select {
		case l <- struct{}{}:
			locks = append(locks, l)
		case <-ctx.Done():
			unlock()
			return nil, errors.Wrap(ctx.Err(), "cannot wait for other objects of the tailnet")
		}
	}
	return unlock, nil
}

// Exclusively calls fn while no other contender of this process that shares a scope runs
// Exclusively.
func Exclusively(ctx context.Context, c Contender, fn func() error) error {
	unlock, err := Lock(ctx, c)
	if err != nil {
		return err
	}
	defer unlock()
	return fn()
}

func scopeLock(scope string) chan struct{} {
	scopeLocks.Lock()
	defer scopeLocks.Unlock()
	l, ok := scopeLocks.locks[scope]
	if !ok {
		l = make(chan struct{}, 1)
		scopeLocks.locks[scope] = l
	}
	return l
}
