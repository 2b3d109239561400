// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	tsclient "tailscale.com/client/tailscale/v2"
)

// OAuth scopes of trust credentials.
const (
	scopeOAuthKeys     = "oauth_keys"
	scopeFederatedKeys = "federated_keys"
)

// Types of trust credentials, as Tailscale names them.
const (
	KeyTypeOAuthClient       = "client"
	KeyTypeFederatedIdentity = "federated"
)

// Types of the client library that callers use.
type (
	// An OAuthClientRequest is the desired state of an OAuth client.
	OAuthClientRequest = tsclient.CreateOAuthClientRequest

	// A FederatedIdentityRequest is the desired state of a federated identity.
	FederatedIdentityRequest = tsclient.CreateFederatedIdentityRequest
)

func isKey(k Key, id string) bool { return k.ID == id }

func isTrustCredential(k Key) bool {
	return k.KeyType == KeyTypeOAuthClient || k.KeyType == KeyTypeFederatedIdentity
}

// A TrustCredentialsResource calls the API for OAuth clients and federated identities.
type TrustCredentialsResource struct{ *core }

// loadTrustCredentials lists OAuth clients and federated identities.
func (c TrustCredentialsResource) loadTrustCredentials(ctx context.Context) ([]Key, time.Time, error) {
	ks, at, err := c.listKeys(ctx, true)
	if err != nil {
		return nil, at, err
	}
	// With narrow scopes, the list of all keys may contain no trust credential, not even the
	// caller's. The separate list of each kind contains them.
	if !slices.ContainsFunc(ks, isTrustCredential) {
		if ks, at, err = c.listKeys(ctx, false); err != nil {
			return nil, at, err
		}
	}
	return slices.DeleteFunc(ks, func(k Key) bool { return !isTrustCredential(k) }), at, nil
}

func (c TrustCredentialsResource) listKeys(ctx context.Context, all bool) ([]Key, time.Time, error) {
	r := request{scope: scopeOAuthKeys + " or " + scopeFederatedKeys, method: http.MethodGet, path: []string{"tailnet", c.tailnet, "keys"}, tailnet: true}
	if all {
		r.query = url.Values{"all": {"true"}}
	}
	return listOf[Key](ctx, c.core, r, "keys")
}

// credentials returns the shared list of OAuth clients and federated identities.
func (c TrustCredentialsResource) credentials() *list[Key] {
	return listOfKind(c.core, "trust-credentials", isKey, func(c *core) loader[Key] { return TrustCredentialsResource{c}.loadTrustCredentials })
}

// TrustCredentials returns the tailnet's OAuth clients and federated identities,
// without their secrets, from a shared list.
func (c TrustCredentialsResource) TrustCredentials(ctx context.Context, staleness Staleness) ([]Key, error) {
	l, _, err := c.credentials().get(ctx, c.maxAge(staleness))
	return l, err
}

// TrustCredential returns an OAuth client or a federated identity by its ID without its secret. It
// always sends a request. For other keys it returns a not-found error.
func (c TrustCredentialsResource) TrustCredential(ctx context.Context, id string) (*Key, error) {
	k, err := c.api.Keys().Get(ctx, id)
	if err != nil {
		return nil, classify(err, scopeOAuthKeys+" or "+scopeFederatedKeys, false)
	}
	if !isTrustCredential(*k) || k.Invalid || !k.Revoked.IsZero() {
		return nil, &Error{Class: ClassNotFound, Status: http.StatusNotFound, Message: "the key is no valid OAuth client or federated identity"}
	}
	*k = listed(*k, k.KeyType)
	return k, nil
}

// CreateOAuthClient creates an OAuth client. Only this response contains its secret, Key.Key.
func (c TrustCredentialsResource) CreateOAuthClient(ctx context.Context, r OAuthClientRequest) (*Key, error) {
	if err := c.checkTags(r.Tags); err != nil {
		return nil, err
	}
	k, err := c.api.Keys().CreateOAuthClient(ctx, r)
	if err != nil {
		return nil, c.credentials().createFailed(classify(err, scopeOAuthKeys, true))
	}
	return k, c.credentials().add(k.ID, listed(*k, KeyTypeOAuthClient))
}

// SetOAuthClient replaces all fields of an OAuth client except for its ID and secret.
func (c TrustCredentialsResource) SetOAuthClient(ctx context.Context, id string, r OAuthClientRequest) error {
	if err := c.checkTags(r.Tags); err != nil {
		return err
	}
	return c.credentials().write(id, func() (fold[Key], error) {
		if err := c.setCredential(ctx, scopeOAuthKeys, id, KeyTypeOAuthClient, r); err != nil {
			return nil, err
		}
		return edited(func(k *Key) { k.Description, k.Scopes, k.Tags = r.Description, r.Scopes, r.Tags }), nil
	})
}

// DeleteOAuthClient removes an OAuth client. It returns no error if the client does not exist.
func (c TrustCredentialsResource) DeleteOAuthClient(ctx context.Context, id string) error {
	return c.deleteCredential(ctx, id, scopeOAuthKeys)
}

// CreateFederatedIdentity creates a federated identity. Tailscale chooses an audience if the
// request has none.
func (c TrustCredentialsResource) CreateFederatedIdentity(ctx context.Context, r FederatedIdentityRequest) (*Key, error) {
	if err := c.checkTags(r.Tags); err != nil {
		return nil, err
	}
	k, err := c.api.Keys().CreateFederatedIdentity(ctx, r)
	if err != nil {
		return nil, c.credentials().createFailed(classify(err, scopeFederatedKeys, true))
	}
	return k, c.credentials().add(k.ID, listed(*k, KeyTypeFederatedIdentity))
}

// SetFederatedIdentity replaces all fields of a federated identity except for its ID.
func (c TrustCredentialsResource) SetFederatedIdentity(ctx context.Context, id string, r FederatedIdentityRequest) error {
	if err := c.checkTags(r.Tags); err != nil {
		return err
	}
	return c.credentials().write(id, func() (fold[Key], error) {
		if err := c.setCredential(ctx, scopeFederatedKeys, id, KeyTypeFederatedIdentity, r); err != nil {
			return nil, err
		}
		return edited(func(k *Key) {
			k.Description, k.Scopes, k.Tags = r.Description, r.Scopes, r.Tags
			k.Issuer, k.Subject, k.Audience, k.CustomClaimRules = r.Issuer, r.Subject, r.Audience, r.CustomClaimRules
		}), nil
	})
}

// DeleteFederatedIdentity removes a federated identity. It returns no error if the identity does
// not exist.
func (c TrustCredentialsResource) DeleteFederatedIdentity(ctx context.Context, id string) error {
	return c.deleteCredential(ctx, id, scopeFederatedKeys)
}

// setCredential replaces a trust credential. The client library drops fields that it does not know.
func (c TrustCredentialsResource) setCredential(ctx context.Context, scope, id, keyType string, credential any) error {
	body, err := fieldsOf(credential)
	if err != nil {
		return err
	}
	if err := body.set("keyType", keyType); err != nil {
		return err
	}
	r := request{scope: scope, method: http.MethodPut, path: []string{"tailnet", c.tailnet, "keys", id}}
	return c.replace(ctx, r, body, namesOf[Key]()...)
}

func (c TrustCredentialsResource) deleteCredential(ctx context.Context, id, scope string) error {
	return c.credentials().write(id, func() (fold[Key], error) {
		return removed[Key], ignoreNotFound(classify(c.api.Keys().Delete(ctx, id), scope, false))
	})
}

// listed returns a new key in the form of the list: without its secret.
func listed(k Key, keyType string) Key {
	k.Key, k.KeyType = "", keyType
	return k
}
