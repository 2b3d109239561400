// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"sync"
	"time"

	tsclient "tailscale.com/client/tailscale/v2"
)

// KeyTypeAuth is the type of auth keys in Tailscale's API. Older responses omit it.
const KeyTypeAuth = "auth"

// An AuthKeyRequest describes an auth key of any kind.
type AuthKeyRequest struct {
	// Description identifies the key: letters, digits, dashes and spaces, 50 characters at most.
	Description string

	// Tags are the tags of nodes that log in with the key.
	Tags []string

	// Expiry is how long the key is valid, in whole seconds.
	Expiry time.Duration

	Reusable      bool
	Ephemeral     bool
	Preauthorized bool
}

// IsAuthKey reports whether nodes log in with the key. Other keys are for clients of the API.
func IsAuthKey(k Key) bool { return k.KeyType == KeyTypeAuth || k.KeyType == "" }

// secretless returns the key without its secret, so that caches hold no secrets.
func secretless(k Key) Key {
	k.Key = ""
	return k
}

// An authKeyLoader lists auth keys. Where a list has only IDs, it caches the keys by ID, because
// their type and creation time never change.
type authKeyLoader struct {
	client *core

	mu    sync.Mutex
	cache map[string]Key
}

// load returns the valid keys without their secrets.
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
	l.forgetOthers(listed)
	var keys []Key
	for _, k := range listed {
		// Some versions of the API list only identifiers.
		if k.KeyType == "" && k.Created.IsZero() {
			full, err := l.full(ctx, k.ID)
			if IsNotFound(err) {
				continue
			}
			if err != nil {
				return nil, time.Time{}, err
			}
			k = full
		}
		if IsAuthKey(k) && !k.Invalid {
			keys = append(keys, secretless(k))
		}
	}
	return keys, at, nil
}

// full returns a key that the list has only the ID of. It keeps the key at once: a list with
// hundreds of IDs may need more time than one load has, and the next load continues. The caller
// holds the lock.
func (l *authKeyLoader) full(ctx context.Context, id string) (Key, error) {
	if k, ok := l.cache[id]; ok {
		return k, nil
	}
	k, err := KeysResource{l.client}.AuthKey(ctx, id)
	if err != nil {
		return Key{}, err
	}
	l.cache[id] = *k
	return *k, nil
}

// forgetOthers removes the cached keys that are not listed. The caller holds the lock.
func (l *authKeyLoader) forgetOthers(listed []Key) {
	cache := map[string]Key{}
	for _, k := range listed {
		if full, ok := l.cache[k.ID]; ok {
			cache[k.ID] = full
		}
	}
	l.cache = cache
}

// A KeysResource calls the API for auth keys.
type KeysResource struct{ *core }

// AuthKeys returns the tailnet's valid auth keys, without their secrets, from a
// shared list.
func (c KeysResource) AuthKeys(ctx context.Context, staleness Staleness) ([]Key, error) {
	l, _, err := c.authKeys.get(ctx, c.maxAge(staleness))
	return l, err
}

// AuthKey returns a key by its ID without its secret. It always sends a request. The API still
// returns revoked, used and expired keys for some time, with Invalid set.
func (c KeysResource) AuthKey(ctx context.Context, id string) (*Key, error) {
	k, err := c.api.Keys().Get(ctx, id)
	if err != nil {
		return nil, classify(err, scopeKeys, false)
	}
	*k = secretless(*k)
	return k, nil
}

// validID matches the IDs of keys.
var validID = regexp.MustCompile(`^[A-Za-z0-9]{1,64}$`)

// ValidKeyID reports whether a text can be the ID of a key. Other texts, which tenants may write,
// could change the path of a request.
func ValidKeyID(id string) bool { return validID.MatchString(id) }

// CreateAuthKey creates an auth key. Only this response contains its secret, Key.Key, which is
// wrapped if the client has a signer.
func (c KeysResource) CreateAuthKey(ctx context.Context, r AuthKeyRequest) (*Key, error) {
	if err := c.checkTags(r.Tags); err != nil {
		return nil, err
	}
	req := tsclient.CreateKeyRequest{Description: r.Description, ExpirySeconds: int64(r.Expiry.Seconds())}
	create := &req.Capabilities.Devices.Create
	create.Reusable, create.Ephemeral, create.Preauthorized, create.Tags = r.Reusable, r.Ephemeral, r.Preauthorized, r.Tags
	k, err := c.api.Keys().CreateAuthKey(ctx, req)
	if err != nil {
		// The API may have created the key although the call failed.
		c.authKeys.expire()
		return nil, classify(err, scopeKeys, true)
	}
	if err := c.authKeys.write(k.ID, func() (fold[Key], error) { return replaced(secretless(*k)), nil }); err != nil {
		return k, err
	}
	return k, c.sign(k)
}

// RevokeAuthKey revokes a key. It returns no error if the key does not exist.
func (c KeysResource) RevokeAuthKey(ctx context.Context, id string) error {
	if err := c.checkRevoke(ctx, id); err != nil {
		return err
	}
	return c.authKeys.write(id, func() (fold[Key], error) {
		return removed[Key], ignoreNotFound(classify(c.api.Keys().Delete(ctx, id), scopeKeys, false))
	})
}

// KeysByDescription returns the valid keys with the description, without their secrets, from a
// shared list. The list includes all keys that this client created, unless they were revoked
// elsewhere.
func (c KeysResource) KeysByDescription(ctx context.Context, description string) ([]Key, error) {
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
