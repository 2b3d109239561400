// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"cmp"
	"crypto/subtle"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// Types of trust credentials.
const (
	typeOAuthClient = "client"
	typeFederated   = "federated"
)

// trustScopes are the required scopes to manage trust credentials of a type.
var trustScopes = map[string]string{typeOAuthClient: "oauth_keys", typeFederated: "federated_keys"}

// A trustCredential is an OAuth client or a federated identity that was made
// through the API. Secrets are kept as hashes.
type trustCredential struct {
	ID               string            `json:"id"`
	Type             string            `json:"type"`
	SecretHash       string            `json:"secretHash"`
	Created          time.Time         `json:"created"`
	Updated          time.Time         `json:"updated"`
	Description      string            `json:"description"`
	Scopes           []string          `json:"scopes"`
	Tags             []string          `json:"tags"`
	Issuer           string            `json:"issuer"`
	Subject          string            `json:"subject"`
	Audience         string            `json:"audience"`
	CustomClaimRules map[string]string `json:"customClaimRules"`
	// Calls counts those that failed because the credential was new.
	Calls int `json:"calls,omitempty"`
}

// view is the credential as the API shows it, without its secret.
func (t *trustCredential) view() map[string]any {
	v := map[string]any{
		"id": t.ID, "keyType": t.Type, "description": t.Description, "created": t.Created, "updated": t.Updated,
		"scopes": nonNil(t.Scopes), "tags": nonNil(t.Tags), "userId": "",
	}
	if t.Type == typeFederated {
		v["issuer"], v["subject"], v["audience"], v["customClaimRules"] = t.Issuer, t.Subject, t.Audience, t.CustomClaimRules
	}
	return v
}

// oauthClient is the credential as one that tokens are given for, or nil.
func (st *state) oauthClient(id, secret string) *OAuthClient {
	for _, t := range st.Credentials {
		if t.Type != typeOAuthClient || (id != "" && id != t.ID) {
			continue
		}
		if subtle.ConstantTimeCompare([]byte(t.SecretHash), []byte(hashSecret(secret))) == 1 {
			return &OAuthClient{ID: t.ID, Scopes: t.Scopes, Tags: t.Tags}
		}
	}
	return nil
}

// trustCredentials returns the trust credentials that the actor may see, of one type or, if it
// is empty, of both.
func trustCredentials(c *call, keyType string) []any {
	out := []any{}
	for _, t := range sortedBy(c.s.st.Credentials, func(a, b *trustCredential) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID)) }) {
		if (keyType == "" || keyType == t.Type) && c.actor.allows(trustScopes[t.Type], true) {
			out = append(out, t.view())
		}
	}
	return out
}

// A trustRequest is the body of a call that makes or sets a credential.
type trustRequest struct {
	KeyType          string            `json:"keyType"`
	Description      string            `json:"description"`
	Scopes           []string          `json:"scopes"`
	Tags             []string          `json:"tags"`
	Issuer           string            `json:"issuer"`
	Subject          string            `json:"subject"`
	Audience         string            `json:"audience"`
	CustomClaimRules map[string]string `json:"customClaimRules"`
}

// trustRequest reads and checks the body, and answers if it is wrong.
func (c *call) trustRequest(keyType string) (trustRequest, bool) {
	var r trustRequest
	if !allowsTrust(c, keyType, false) || !c.decode(&r) {
		return r, false
	}
	switch {
	case !describable.MatchString(r.Description):
		c.fail(http.StatusBadRequest, badDescription)
		return r, false
	case len(r.Scopes) == 0:
		// abn/ansible-tailscale-admin, docs/troubleshooting.md.
		c.fail(http.StatusBadRequest, "scopes cannot be empty")
		return r, false
	case undefined(r.Scopes) != "":
		// That the API refuses it with 400 is an assumption.
		c.fail(http.StatusBadRequest, "scope "+strconv.Quote(undefined(r.Scopes))+" is not valid")
		return r, false
	case len(r.Tags) == 0 && (slices.Contains(r.Scopes, "devices:core") || slices.Contains(r.Scopes, "auth_keys")):
		c.fail(http.StatusBadRequest, "tags are required for the scopes devices:core and auth_keys")
		return r, false
	}
	if keyType == typeFederated && !isIdentity(c, r) {
		return r, false
	}
	return r, c.ownsTags(r.Tags)
}

func isIdentity(c *call, r trustRequest) bool {
	u, err := url.Parse(r.Issuer)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		c.fail(http.StatusBadRequest, "issuer must be an https URL")
		return false
	}
	if r.Subject == "" {
		c.fail(http.StatusBadRequest, "subject must be set")
		return false
	}
	for _, claim := range []string{"sub", "iss", "aud"} {
		if _, ok := r.CustomClaimRules[claim]; ok {
			c.fail(http.StatusBadRequest, "custom claim rules must not have "+claim)
			return false
		}
	}
	return true
}

// allowsTrust reports whether the actor may manage credentials of a type, and
// answers if not.
func allowsTrust(c *call, keyType string, read bool) bool {
	if c.actor.allows(trustScopes[keyType], read) {
		return true
	}
	c.forbid()
	return false
}

func (t *trustCredential) set(r trustRequest, at time.Time) {
	t.Updated = at
	t.Description, t.Scopes, t.Tags = r.Description, r.Scopes, r.Tags
	t.Issuer, t.Subject, t.CustomClaimRules = r.Issuer, r.Subject, r.CustomClaimRules
	if r.Audience != "" {
		t.Audience = r.Audience
	}
}

func createTrust(c *call, keyType string) {
	r, ok := c.trustRequest(keyType)
	if !ok {
		return
	}
	at := c.s.now().UTC().Truncate(time.Second)
	t := &trustCredential{ID: "k" + randomHex(6) + "CNTRL", Type: keyType, Created: at}
	if keyType == typeFederated {
		t.Audience = "api.tailscale.com/" + t.ID
	}
	t.set(r, at)
	v := t.view()
	if keyType == typeOAuthClient {
		secret := "tskey-client-" + t.ID + "-" + randomHex(16)
		t.SecretHash = hashSecret(secret)
		v["key"] = secret
	}
	c.s.st.Credentials[t.ID] = t
	c.s.dirty()
	c.json(v)
}

// setTrust replaces a credential; only those of its type can.
func setTrust(c *call) {
	t := c.s.st.Credentials[c.r.PathValue("key")]
	if t == nil {
		if allowsAuthKeys(c, false) && c.key() != nil {
			// abn/ansible-tailscale-admin, docs/troubleshooting.md.
			c.fail(http.StatusBadRequest, `keys of type "auth" can not be updated`)
		}
		return
	}
	r, ok := c.trustRequest(t.Type)
	if !ok {
		return
	}
	if r.KeyType != t.Type {
		c.fail(http.StatusBadRequest, "keyType must be "+t.Type)
		return
	}
	t.set(r, c.s.now().UTC().Truncate(time.Second))
	c.s.dirty()
	c.json(t.view())
}

// trust returns the credential that the path names, if it names one. done says
// that an answer was given.
func (c *call) trust(read bool) (t *trustCredential, done bool) {
	t = c.s.st.Credentials[c.r.PathValue("key")]
	if t != nil && !allowsTrust(c, t.Type, read) {
		return nil, true
	}
	return t, false
}

// allowsAuthKeys reports whether the actor may manage auth keys, and answers if not.
func allowsAuthKeys(c *call, read bool) bool {
	if c.actor.allows("auth_keys", read) {
		return true
	}
	c.forbid()
	return false
}

// listAnyKeys lists the keys that the actor's scopes show. Without the parameter
// all, an OAuth client sees OAuth clients only.
func listAnyKeys(c *call) {
	if c.r.URL.Query().Get("all") == "" && !c.actor.AnyTag {
		if allowsTrust(c, typeOAuthClient, true) {
			c.json(map[string]any{"keys": trustCredentials(c, typeOAuthClient)})
		}
		return
	}
	out := trustCredentials(c, "")
	switch {
	case c.actor.allows("auth_keys", true):
		out = append(out, c.authKeys()...)
	case !c.actor.allows(trustScopes[typeOAuthClient], true) && !c.actor.allows(trustScopes[typeFederated], true):
		// The actor has none of the scopes: name the most common one.
		allowsAuthKeys(c, true)
		return
	}
	c.json(map[string]any{"keys": out})
}

// createAnyKey creates a key of the keyType in the body.
func createAnyKey(c *call) {
	var req struct {
		KeyType string `json:"keyType"`
	}
	if !c.decode(&req) {
		return
	}
	if _, ok := trustScopes[req.KeyType]; ok {
		createTrust(c, req.KeyType)
		return
	}
	if allowsAuthKeys(c, false) {
		createKey(c)
	}
}

func getAnyKey(c *call) {
	t, done := c.trust(true)
	switch {
	case done:
	case t != nil:
		c.json(t.view())
	case allowsAuthKeys(c, true):
		getKey(c)
	}
}

func deleteAnyKey(c *call) {
	t, done := c.trust(false)
	switch {
	case done:
	case t != nil:
		delete(c.s.st.Credentials, t.ID)
		c.s.dirty()
		c.ok()
	case allowsAuthKeys(c, false):
		deleteKey(c)
	}
}

// sortedBy returns the values of a map in an order.
func sortedBy[T any](m map[string]T, order func(a, b T) int) []T {
	return slices.SortedFunc(maps.Values(m), order)
}
