// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/ownership"
)

// attempting wraps a connector. Its clients record whether a failed Create made nothing for certain.
// Otherwise the object would own what looks like its own and appears later.
type attempting[T resource.ModernManaged] struct {
	managed.TypedExternalConnector[T]
}

// Connect returns a client that records how a Create failed.
func (c *attempting[T]) Connect(ctx context.Context, mg T) (managed.TypedExternalClient[T], error) {
	e, err := c.TypedExternalConnector.Connect(ctx, mg)
	if err != nil {
		return nil, err
	}
	return &attemptingClient[T]{TypedExternalClient: e}, nil
}

type attemptingClient[T resource.ModernManaged] struct {
	managed.TypedExternalClient[T]

	unanswered bool // Set by Observe, because the reconciler then records the start of the next Create.
}

// Observe observes the object and remembers whether the result of its last Create is unknown.
func (c *attemptingClient[T]) Observe(ctx context.Context, mg T) (managed.ExternalObservation, error) {
	c.unanswered = ownership.Unanswered(mg)
	return c.TypedExternalClient.Observe(ctx, mg)
}

// Create creates the object. The reconciler saves annotations after a failure, too.
func (c *attemptingClient[T]) Create(ctx context.Context, mg T) (managed.ExternalCreation, error) {
	o, err := c.TypedExternalClient.Create(ctx, mg)
	if err != nil {
		ownership.RecordFailure(mg, err, c.unanswered)
	}
	return o, err
}
