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

// A Lookup finds objects of the tailnet whose IDs Tailscale assigns.
type Lookup[T any] struct {
	// Names of one and of several objects in errors, such as webhook and webhooks.
	Singular, Plural string

	// List returns the objects of the shared list.
	List func(ctx context.Context, staleness tailscale.Staleness) ([]T, error)

	// ID returns the ID of an object.
	ID func(T) string

	// Get returns an object by its ID, because the shared list may be older than the object.
	Get func(ctx context.Context, id string) (*T, error)

	// Match reports whether an object is of the wanted type. Nil accepts all.
	Match func(T) bool

	// Like reports whether an object with another ID may belong to the managed object. Nil accepts
	// none.
	Like func(T) bool

	// Recorded is the ID in the managed object's status.
	Recorded string

	// Adopt lets the managed object take over an object that it did not make.
	Adopt bool

	// Exists is an error format that describes an object which the managed object may not take
	// over. It has one verb, for the ID: webhook %q to this URL.
	Exists string
}

// Find returns the object whose ID is the managed object's external name, or else an object that
// Like accepts, or else nil. If a user set the external name and no object has that ID, Find
// returns an error.
func (l Lookup[T]) Find(ctx context.Context, mg resource.Managed, staleness tailscale.Staleness) (*T, error) {
	all, err := l.list(ctx, staleness)
	if err != nil {
		return nil, err
	}
	if id := xpmeta.GetExternalName(mg); id != "" {
		found, err := l.byID(ctx, mg, all, id)
		if found != nil || err != nil {
			return found, err
		}
	}
	if l.Like == nil {
		return nil, nil // Nil without an error means that there is none.
	}
	if i := slices.IndexFunc(all, l.Like); i >= 0 {
		return &all[i], nil
	}
	return nil, nil // Nil without an error means that there is none.
}

func (l Lookup[T]) list(ctx context.Context, staleness tailscale.Staleness) ([]T, error) {
	all, err := l.List(ctx, staleness)
	return all, errors.Wrapf(err, "cannot list %s", l.Plural)
}

func (l Lookup[T]) byID(ctx context.Context, mg resource.Managed, all []T, id string) (*T, error) {
	var found *T
	if i := slices.IndexFunc(all, func(t T) bool { return l.ID(t) == id }); i >= 0 {
		found = &all[i]
	} else {
		var err error
		found, err = l.Get(ctx, id)
		if tailscale.IsNotFound(err) {
			if CreateStarted(mg) || l.Recorded == id || xpmeta.WasDeleted(mg) {
				return nil, nil // Nil without an error means that there is none.
			}
			return nil, Missing(mg, l.Singular)
		}
		if err != nil {
			return nil, errors.Wrapf(err, "cannot get %s %q", l.Singular, id)
		}
	}
	if !l.is(*found) {
		return nil, Missing(mg, l.Singular)
	}
	return found, nil
}

func (l Lookup[T]) is(t T) bool { return l.Match == nil || l.Match(t) }

// Remaining returns all objects of the managed object, recorded or not: the one whose ID is the
// external name, and those that marked accepts.
func (l Lookup[T]) Remaining(ctx context.Context, mg resource.Managed, marked func(T) bool) ([]T, error) {
	all, err := l.list(ctx, tailscale.Recent)
	if err != nil {
		return nil, err
	}
	id := xpmeta.GetExternalName(mg)
	var ours []T
	for _, t := range all {
		if l.is(t) && (l.ID(t) == id || marked(t)) {
			ours = append(ours, t)
		}
	}
	if id == "" || slices.ContainsFunc(ours, func(t T) bool { return l.ID(t) == id }) {
		return ours, nil
	}
	// The list may be incomplete.
	t, err := l.Get(ctx, id)
	if tailscale.IsNotFound(err) {
		return ours, nil
	}
	if err != nil {
		return nil, errors.Wrapf(err, "cannot get %s %q", l.Singular, id)
	}
	if l.is(*t) {
		ours = append(ours, *t)
	}
	return ours, nil
}

// FindOwned returns the ID of the object that the managed object owns according to a recent list,
// or "" if there is none.
func (l Lookup[T]) FindOwned(ctx context.Context, mg resource.Managed) (string, error) {
	t, err := l.Find(ctx, mg, tailscale.Recent)
	if err != nil || t == nil || !Owns(mg, l.ID(*t)) {
		return "", err
	}
	return l.ID(*t), nil
}

// MayManage returns an error if the managed object neither made the object with the ID nor adopts
// objects.
func (l Lookup[T]) MayManage(mg resource.Managed, id string) error {
	if l.Adopt || Attempted(mg, id) {
		return nil
	}
	return NotOwned(mg, l.Exists+" exists and was not made for this object; delete it, or set adoptionPolicy to Adopt", id)
}

// Record sets the external name in a Create if the object already exists, and reports whether it
// does. Observed is the ID of the object that Observe found to be ours: an object that was made
// since then has another owner. It asks for a new list: Tailscale answers a create of what exists
// with an error that can also mean that the create succeeded, such as 500 for a webhook to a URL that
// is in use.
func (l Lookup[T]) Record(ctx context.Context, mg resource.Managed, observed string) (bool, error) {
	t, err := l.Find(ctx, mg, tailscale.Current)
	if err != nil || t == nil {
		return false, NotSent(err)
	}
	id := l.ID(*t)
	if id != observed && id != xpmeta.GetExternalName(mg) && !l.Adopt {
		SetNotOwned(mg, id)
		return true, NotSent(l.MayManage(mg, id))
	}
	SetOwned(mg, id)
	return true, nil
}

// DeleteAll calls del for each object.
func (l Lookup[T]) DeleteAll(ctx context.Context, ts []T, del func(ctx context.Context, id string) error) error {
	for _, t := range ts {
		if err := l.Delete(ctx, l.ID(t), del); err != nil {
			return err
		}
	}
	return nil
}

// Delete calls del for the object with the ID. An empty ID means no object.
func (l Lookup[T]) Delete(ctx context.Context, id string, del func(ctx context.Context, id string) error) error {
	if id == "" {
		return nil
	}
	return errors.Wrapf(del(ctx, id), "cannot delete %s %q", l.Singular, id)
}
