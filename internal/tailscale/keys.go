// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"
	"time"

	tsclient "tailscale.com/client/tailscale/v2"
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
	if err := c.mayMint(r.Tags); err != nil {
		return nil, err
	}
	req := tsclient.CreateKeyRequest{Description: r.Description, ExpirySeconds: int64(r.Expiry.Seconds())}
	req.Capabilities.Devices.Create.Preauthorized = true
	req.Capabilities.Devices.Create.Tags = r.Tags
	k, err := c.api.Keys().CreateAuthKey(ctx, req)
	if err != nil {
		return nil, classify(err, scopeKeys, true)
	}
	return k, nil
}

// KeysByDescription returns the keys with the description, without their
// secrets.
func (c *Client) KeysByDescription(ctx context.Context, description string) ([]Key, error) {
	all, err := c.api.Keys().List(ctx, true)
	if err != nil {
		return nil, classify(err, scopeKeys, true)
	}
	var found []Key
	for _, k := range all {
		// Some versions of the API list identifiers only.
		if k.Description == "" && k.Created.IsZero() {
			full, err := c.api.Keys().Get(ctx, k.ID)
			if err = classify(err, scopeKeys, false); IsNotFound(err) {
				continue
			}
			if err != nil {
				return nil, err
			}
			k = *full
		}
		if k.Description == description {
			found = append(found, k)
		}
	}
	return found, nil
}

// DeleteKey removes a key. One that does not exist is no error.
func (c *Client) DeleteKey(ctx context.Context, id string) error {
	if err := c.mayRevoke(ctx, id); err != nil {
		return err
	}
	return ignoreNotFound(classify(c.api.Keys().Delete(ctx, id), scopeKeys, false))
}
