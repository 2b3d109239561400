// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// A CredentialsAPI reads a tailnet's OAuth clients and federated identities.
type CredentialsAPI interface {
	TrustCredentials(ctx context.Context, staleness tailscale.Staleness) ([]tailscale.Key, error)
	TrustCredential(ctx context.Context, id string) (*tailscale.Key, error)
}

// Credentials finds OAuth clients or federated identities, whose descriptions begin with the
// marker of the managed object that made them.
type Credentials struct {
	API       CredentialsAPI
	ClusterID string

	// Name of the credentials in errors, such as OAuth client.
	Singular string

	// Type is the type of key, such as tailscale.KeyTypeOAuthClient.
	Type string
}

// Lookup returns a Lookup of the credentials. Recorded is the id in the managed object's
// status.
func (c Credentials) Lookup(recorded string) Lookup[tailscale.Key] {
	return Lookup[tailscale.Key]{
		Singular: c.Singular,
		Plural:   "trust credentials",
		List:     c.API.TrustCredentials,
		ID:       func(k tailscale.Key) string { return k.ID },
		Get:      c.API.TrustCredential,
		Match:    func(k tailscale.Key) bool { return k.KeyType == c.Type },
		Recorded: recorded,
	}
}

// Find returns the credential with the managed object's external name, or nil.
func (c Credentials) Find(ctx context.Context, mg resource.Managed, recorded string) (*tailscale.Key, error) {
	return c.Lookup(recorded).Find(ctx, mg, tailscale.Cached)
}

// Remaining returns all credentials of the managed object, recorded or not.
func (c Credentials) Remaining(ctx context.Context, mg resource.Managed) ([]tailscale.Key, error) {
	marker := Marker(c.ClusterID, mg)
	return c.Lookup("").Remaining(ctx, mg, func(k tailscale.Key) bool { return Marked(k.Description, marker) })
}

// DeleteAll calls del for each of the credentials.
func (c Credentials) DeleteAll(ctx context.Context, ks []tailscale.Key, del func(ctx context.Context, id string) error) error {
	return c.Lookup("").DeleteAll(ctx, ks, del)
}
