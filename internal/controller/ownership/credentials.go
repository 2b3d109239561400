// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// A CredentialsAPI has a tailnet's OAuth clients and federated identities.
type CredentialsAPI interface {
	TrustCredentials(ctx context.Context, staleness tailscale.Staleness) ([]tailscale.Key, error)
	TrustCredential(ctx context.Context, id string) (*tailscale.Key, error)
}

// Credentials finds those of one type, which tell by a marker whose they are.
type Credentials struct {
	API       CredentialsAPI
	ClusterID string

	// What is looked for, for errors: OAuth client.
	What string

	// Type of key, such as tailscale.KeyTypeOAuthClient.
	Type string
}

// lookup returns a Lookup in the shared list.
func (c Credentials) lookup(ctx context.Context, staleness tailscale.Staleness) (Lookup[tailscale.Key], error) {
	all, err := c.API.TrustCredentials(ctx, staleness)
	return Lookup[tailscale.Key]{
		What: c.What,
		All:  all,
		ID:   func(k tailscale.Key) string { return k.ID },
		Get:  c.API.TrustCredential,
		Is:   func(k tailscale.Key) bool { return k.KeyType == c.Type },
	}, errors.Wrap(err, "cannot list trust credentials")
}

// Find the credential with the managed object's external name. Nil if there is none.
// recorded is the id that the object's status tells.
func (c Credentials) Find(ctx context.Context, mg resource.Managed, recorded string) (*tailscale.Key, error) {
	l, err := c.lookup(ctx, tailscale.Cached)
	if err != nil {
		return nil, err
	}
	l.Recorded = recorded
	return l.Find(ctx, mg)
}

// Left returns all credentials of the managed object, recorded or not.
func (c Credentials) Left(ctx context.Context, mg resource.Managed) ([]tailscale.Key, error) {
	l, err := c.lookup(ctx, tailscale.Recent)
	if err != nil {
		return nil, err
	}
	marker := Marker(c.ClusterID, mg)
	return l.Left(ctx, mg, func(k tailscale.Key) bool { return Marked(k.Description, marker) })
}
