// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"
	"net/http"
	"net/url"
	"sync"
	"time"

	tsclient "tailscale.com/client/tailscale/v2"
)

// KeyTypeAuth is the type of auth keys, as Tailscale names it. Older answers
// leave it out.
const KeyTypeAuth = "auth"

// An AuthKeyRequest describes an auth key of any kind.
type AuthKeyRequest struct {
	// Description to find the key by: letters, digits, dashes and spaces, 50 at
	// most.
	Description string

	// Tags of the nodes that log in with the key.
	Tags []string

	// Expiry is how long the key may be used, in whole seconds.
	Expiry time.Duration

	Reusable      bool
	Ephemeral     bool
	Preauthorized bool
}

// IsAuthKey reports whether a key logs nodes in, rather than clients of the API.
func IsAuthKey(k Key) bool { return k.KeyType == KeyTypeAuth || k.KeyType == "" }

// secretless keeps secrets out of what is remembered.
func secretless(k Key) Key {
	k.Key = ""
	return k
}

// An authKeyLoader lists auth keys. It remembers what keys are that a list
// names by their IDs only: that never changes.
type authKeyLoader struct {
	client *Client

	mu    sync.Mutex
	known map[string]Key
}

// load returns the keys that are still valid, without their secrets.
func (l *authKeyLoader) load(ctx context.Context) ([]Key, time.Time, error) {
	listed, at, err := listOf[Key](ctx, l.client, request{
		scope: scopeKeys, method: http.MethodGet, tailnet: true,
		path: []string{"tailnet", l.client.tailnet, "keys"}, query: url.Values{"all": {"true"}},
	}, "keys")
	if err != nil {
		return nil, time.Time{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	known := map[string]Key{}
	var keys []Key
	for _, k := range listed {
		// Some versions of the API list identifiers only.
		if k.KeyType == "" && k.Created.IsZero() {
			full, ok := l.known[k.ID]
			if !ok {
				got, err := l.client.AuthKey(ctx, k.ID)
				if IsNotFound(err) {
					continue
				}
				if err != nil {
					return nil, time.Time{}, err
				}
				full = *got
			}
			k = full
			known[k.ID] = k
		}
		if IsAuthKey(k) && !k.Invalid {
			keys = append(keys, secretless(k))
		}
	}
	l.known = known
	return keys, at, nil
}

// AuthKeys returns the tailnet's valid auth keys, without their secrets, from a
// shared list.
func (c *Client) AuthKeys(ctx context.Context, staleness Staleness) ([]Key, error) {
	l, _, err := c.authKeys.get(ctx, c.maxAge(staleness))
	return l, err
}

// AuthKey returns a key by its ID, fresh and without its secret. Keys that were
// revoked, used up or expired are found, for a while at least, and are Invalid.
func (c *Client) AuthKey(ctx context.Context, id string) (*Key, error) {
	k, err := c.api.Keys().Get(ctx, id)
	if err != nil {
		return nil, classify(err, scopeKeys, false)
	}
	*k = secretless(*k)
	return k, nil
}

// CreateAuthKey mints an auth key. Its secret, Key.Key, is in the answer only.
func (c *Client) CreateAuthKey(ctx context.Context, r AuthKeyRequest) (*Key, error) {
	if err := c.checkTags(r.Tags); err != nil {
		return nil, err
	}
	req := tsclient.CreateKeyRequest{Description: r.Description, ExpirySeconds: int64(r.Expiry.Seconds())}
	create := &req.Capabilities.Devices.Create
	create.Reusable, create.Ephemeral, create.Preauthorized, create.Tags = r.Reusable, r.Ephemeral, r.Preauthorized, r.Tags
	k, err := c.api.Keys().CreateAuthKey(ctx, req)
	if err != nil {
		// It may exist all the same.
		c.authKeys.expire()
		return nil, classify(err, scopeKeys, true)
	}
	err = c.authKeys.write(k.ID, func() (fold[Key], error) { return replaced(secretless(*k)), nil })
	return k, err
}

// RevokeAuthKey ends the life of a key. One that does not exist is no error.
func (c *Client) RevokeAuthKey(ctx context.Context, id string) error {
	if err := c.checkRevoke(ctx, id); err != nil {
		return err
	}
	return c.authKeys.write(id, func() (fold[Key], error) {
		return removed[Key], ignoreNotFound(classify(c.api.Keys().Delete(ctx, id), scopeKeys, false))
	})
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
