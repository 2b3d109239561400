// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"cmp"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// maxKeyExpiry is the longest and the default life of a key.
const maxKeyExpiry = 90 * 24 * time.Hour

// keyCapabilities has the API's shape.
type keyCapabilities struct {
	Devices struct {
		Create struct {
			Reusable      bool     `json:"reusable"`
			Ephemeral     bool     `json:"ephemeral"`
			Preauthorized bool     `json:"preauthorized"`
			Tags          []string `json:"tags"`
		} `json:"create"`
	} `json:"devices"`
}

// An authKey logs nodes in. Its secret is kept as a hash.
type authKey struct {
	ID           string          `json:"id"`
	SecretHash   string          `json:"secretHash"`
	Description  string          `json:"description"`
	Created      time.Time       `json:"created"`
	Expires      time.Time       `json:"expires"`
	Capabilities keyCapabilities `json:"capabilities"`
	Used         bool            `json:"used"`
	Revoked      time.Time       `json:"revoked,omitzero"`
}

// keptRevoked is how long a key that was revoked, used up or has expired can
// still be read.
const keptRevoked = 30 * 24 * time.Hour

// invalid reports whether the key no longer logs nodes in.
func (k *authKey) invalid(at time.Time) bool {
	return !k.Revoked.IsZero() || at.After(k.Expires) || (k.Used && !k.Capabilities.Devices.Create.Reusable)
}

// view is the key as the API shows it, without its secret.
func (k *authKey) view(at time.Time) map[string]any {
	v := map[string]any{
		"id": k.ID, "keyType": "auth", "description": k.Description,
		"created": k.Created, "expires": k.Expires, "expirySeconds": int64(k.Expires.Sub(k.Created).Seconds()),
		"invalid": k.invalid(at), "capabilities": k.Capabilities, "tags": nonNil(k.Capabilities.Devices.Create.Tags),
		"userId": "", // OAuth clients make keys for the tailnet, not for a user.
	}
	if !k.Revoked.IsZero() {
		v["revoked"] = k.Revoked
	}
	return v
}

// keyBySecret returns the auth key with the secret that a node presents.
func (st *state) keyBySecret(secret string) *authKey {
	// A node may append parameters to a key.
	secret, _, _ = strings.Cut(secret, "?")
	h := hashSecret(secret)
	for _, k := range st.Keys {
		if k.SecretHash == h && k.Revoked.IsZero() {
			return k
		}
	}
	return nil
}

// describable matches the descriptions that the API takes. The words of the refusal,
// and of that of a key without tags, are from abn/ansible-tailscale-admin,
// docs/troubleshooting.md; that a description which is too long gets the same is an
// assumption.
var describable = regexp.MustCompile(`^[a-zA-Z0-9 -]{0,50}$`)

const badDescription = "keys: description had invalid characters"

func createKey(c *call) {
	var req struct {
		KeyType       string          `json:"keyType"`
		Capabilities  keyCapabilities `json:"capabilities"`
		ExpirySeconds int64           `json:"expirySeconds"`
		Description   string          `json:"description"`
	}
	if !c.decode(&req) {
		return
	}
	if req.KeyType != "" && req.KeyType != "auth" {
		c.fail(http.StatusBadRequest, "unsupported keyType")
		return
	}
	life := time.Duration(req.ExpirySeconds) * time.Second
	if req.ExpirySeconds < 0 || life > maxKeyExpiry {
		c.fail(http.StatusBadRequest, "expirySeconds must be between 1 and 7776000")
		return
	}
	if !describable.MatchString(req.Description) {
		c.fail(http.StatusBadRequest, badDescription)
		return
	}
	tags := req.Capabilities.Devices.Create.Tags
	// An OAuth client belongs to no user: a key without tags would have no owner.
	if len(tags) == 0 && !c.actor.AnyTag {
		c.fail(http.StatusBadRequest, "tailnet-owned auth key must have tags set")
		return
	}
	if !c.ownsTags(tags) {
		return
	}
	if life == 0 {
		life = maxKeyExpiry
	}
	at := c.s.now().UTC().Truncate(time.Second)
	id := "k" + randomHex(6) + "CNTRL"
	secret := "tskey-auth-" + id + "-" + randomHex(16)
	slices.Sort(tags)
	k := &authKey{ID: id, SecretHash: hashSecret(secret), Description: req.Description, Created: at, Expires: at.Add(life), Capabilities: req.Capabilities}
	c.s.st.Keys[id] = k
	c.s.dirty()
	v := k.view(at)
	v["key"] = secret
	c.json(v)
}

// authKeys gives valid keys only, as the API says.
func (c *call) authKeys() []any {
	at := c.s.now()
	ks := make([]*authKey, 0, len(c.s.st.Keys))
	for _, k := range c.s.st.Keys {
		if !k.invalid(at) {
			ks = append(ks, k)
		}
	}
	slices.SortFunc(ks, func(a, b *authKey) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID)) })
	out := make([]any, 0, len(ks))
	for _, k := range ks {
		out = append(out, k.view(at))
	}
	return out
}

func (c *call) key() *authKey {
	k := c.s.st.Keys[c.r.PathValue("key")]
	if k == nil {
		c.fail(http.StatusNotFound, "key not found")
	}
	return k
}

func getKey(c *call) {
	if k := c.key(); k != nil {
		c.json(k.view(c.s.now()))
	}
}

// deleteKey revokes a key. It can be read for a while, but not revoked again.
func deleteKey(c *call) {
	k := c.key()
	if k == nil {
		return
	}
	if !k.Revoked.IsZero() {
		c.fail(c.s.switches.RevokedKeyStatus, "key not found")
		return
	}
	at := c.s.now().UTC()
	k.Revoked = at.Truncate(time.Second)
	maps.DeleteFunc(c.s.st.Keys, func(_ string, k *authKey) bool {
		return k.invalid(at) && at.Sub(k.Expires) > keptRevoked
	})
	c.s.dirty()
	c.ok()
}
