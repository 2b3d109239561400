// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"context"
	"slices"
	"sync"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// scopeLocks has a lock for each scope that was ever locked. Controllers of several kinds
// share it: they write the same settings.
var scopeLocks = struct {
	sync.Mutex

	held map[string]chan struct{}
}{held: map[string]chan struct{}{}}

// Lock keeps others from what a claimant reads and then writes, until unlock is called:
// Tailscale's API has nothing that notices a write in between. It excludes those who share
// a scope with the claimant, in this process.
func Lock(ctx context.Context, c Claimant) (unlock func(), err error) {
	// All take them in one order, so nobody waits for another one in a circle.
	scopes := slices.Compact(slices.Sorted(slices.Values(c.Scopes)))
	var held []chan struct{}
	unlock = func() {
		for _, l := range held {
			<-l
		}
	}
	for _, s := range scopes {
		l := scopeLock(s)
		select {
		case l <- struct{}{}:
			held = append(held, l)
		case <-ctx.Done():
			unlock()
			return nil, errors.Wrap(ctx.Err(), "cannot wait for other objects of the tailnet")
		}
	}
	return unlock, nil
}

// Exclusively calls do while no other claimant of this process that shares a scope does
// anything exclusively.
func Exclusively(ctx context.Context, c Claimant, do func() error) error {
	unlock, err := Lock(ctx, c)
	if err != nil {
		return err
	}
	defer unlock()
	return do()
}

func scopeLock(scope string) chan struct{} {
	scopeLocks.Lock()
	defer scopeLocks.Unlock()
	l, ok := scopeLocks.held[scope]
	if !ok {
		l = make(chan struct{}, 1)
		scopeLocks.held[scope] = l
	}
	return l
}
