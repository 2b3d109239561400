// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"
	"time"
)

// A KeyRequest describes a single-use, preauthorized key of nodes that stay.
type KeyRequest struct {
	// Description to find the key by: letters, digits, dashes and spaces, 50 at
	// most.
	Description string

	// Tags of the node that logs in with the key.
	Tags []string

	// Expiry is how long the key may wait for its use.
	Expiry time.Duration
}

// CreateKey mints an auth key. Its secret is in the answer only.
func (c *Client) CreateKey(ctx context.Context, r KeyRequest) (*Key, error) {
	return c.CreateAuthKey(ctx, AuthKeyRequest{Description: r.Description, Tags: r.Tags, Expiry: r.Expiry, Preauthorized: true})
}

// KeysByDescription returns the valid keys with the description, without their secrets,
// from a shared list. It has all keys that this client made, unless others revoked them.
func (c *Client) KeysByDescription(ctx context.Context, description string) ([]Key, error) {
	all, err := c.AuthKeys(ctx, Cached)
	if err != nil {
		return nil, err
	}
	var found []Key
	for _, k := range all {
		if k.Description == description {
			found = append(found, k)
		}
	}
	return found, nil
}

// DeleteKey removes a key. One that does not exist is no error.
func (c *Client) DeleteKey(ctx context.Context, id string) error {
	return c.RevokeAuthKey(ctx, id)
}
