// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"context"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// A Lookup says how objects of the tailnet are found whose ids Tailscale gives.
type Lookup[T any] struct {
	// What is looked for, for errors: webhook.
	What string

	// All that the shared list has.
	All []T

	// ID of one.
	ID func(T) string

	// Get one by its id: the list may be older than it.
	Get func(ctx context.Context, id string) (*T, error)

	// Is reports whether one is of the kind that is looked for. Nil means all are.
	Is func(T) bool

	// Like reports whether one without the id may stand for the managed object. Nil
	// means that none may.
	Like func(T) bool

	// Recorded is the id that the managed object's status tells.
	Recorded string
}

// Find what has the managed object's external name as its id, else what is like
// it, else nothing: nil. An external name that a person wrote, and that nothing
// has, is an error.
func (l Lookup[T]) Find(ctx context.Context, mg resource.Managed) (*T, error) {
	if id := xpmeta.GetExternalName(mg); id != "" {
		found, err := l.byID(ctx, mg, id)
		if found != nil || err != nil {
			return found, err
		}
	}
	if l.Like == nil {
		return nil, nil // None is an answer.
	}
	if i := slices.IndexFunc(l.All, l.Like); i >= 0 {
		return &l.All[i], nil
	}
	return nil, nil // None is an answer.
}

func (l Lookup[T]) byID(ctx context.Context, mg resource.Managed, id string) (*T, error) {
	var found *T
	if i := slices.IndexFunc(l.All, func(t T) bool { return l.ID(t) == id }); i >= 0 {
		found = &l.All[i]
	} else {
		var err error
		found, err = l.Get(ctx, id)
		if tailscale.IsNotFound(err) {
			if Tried(mg) || l.Recorded == id || xpmeta.WasDeleted(mg) {
				return nil, nil // None is an answer.
			}
			return nil, Missing(mg, l.What)
		}
		if err != nil {
			return nil, errors.Wrapf(err, "cannot get %s %q", l.What, id)
		}
	}
	if !l.is(*found) {
		return nil, Missing(mg, l.What)
	}
	return found, nil
}

func (l Lookup[T]) is(t T) bool { return l.Is == nil || l.Is(t) }

// Left returns all that is the managed object's, recorded or not: what has its
// external name as its id, and what marks tells to be its own.
func (l Lookup[T]) Left(ctx context.Context, mg resource.Managed, marks func(T) bool) ([]T, error) {
	id := xpmeta.GetExternalName(mg)
	var ours []T
	for _, t := range l.All {
		if l.is(t) && (l.ID(t) == id || marks(t)) {
			ours = append(ours, t)
		}
	}
	if id == "" || slices.ContainsFunc(ours, func(t T) bool { return l.ID(t) == id }) {
		return ours, nil
	}
	// The list may not show all.
	t, err := l.Get(ctx, id)
	if tailscale.IsNotFound(err) {
		return ours, nil
	}
	if err != nil {
		return nil, errors.Wrapf(err, "cannot get %s %q", l.What, id)
	}
	if l.is(*t) {
		ours = append(ours, *t)
	}
	return ours, nil
}
