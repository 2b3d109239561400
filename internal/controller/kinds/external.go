// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
)

// NopDisconnect is embedded in external clients. They share the client of Tailscale's API, so there
// is nothing to close.
type NopDisconnect struct{}

// Disconnect does nothing.
func (NopDisconnect) Disconnect(context.Context) error { return nil }

// A nothingExternal is the external client of an object that left nothing in the tailnet.
type nothingExternal[T resource.ModernManaged] struct{ NopDisconnect }

// Observe reports that nothing exists.
func (nothingExternal[T]) Observe(context.Context, T) (managed.ExternalObservation, error) {
	return managed.ExternalObservation{}, nil
}

// Create is never called for an object that is being deleted.
func (nothingExternal[T]) Create(context.Context, T) (managed.ExternalCreation, error) {
	return managed.ExternalCreation{}, nil
}

// Update is never called for an object that is being deleted.
func (nothingExternal[T]) Update(context.Context, T) (managed.ExternalUpdate, error) {
	return managed.ExternalUpdate{}, nil
}

// Delete is never called, because nothing exists.
func (nothingExternal[T]) Delete(context.Context, T) (managed.ExternalDelete, error) {
	return managed.ExternalDelete{}, nil
}

func samePoll(_ resource.Managed, interval time.Duration) time.Duration { return interval }
