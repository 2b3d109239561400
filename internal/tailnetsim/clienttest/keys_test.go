// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package clienttest

import (
	"net/http"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	"tailscale.com/client/tailscale/v2"
)

// random are the fields of a key that the API chooses.
var random = cmpopts.IgnoreFields(tailscale.Key{}, "ID", "Key", "Created", "Updated", "Expires", "UserID")

// wantKey compares a key. The fields that the API chooses only have to be there.
func (w *world) wantKey(want tailscale.Key, got *tailscale.Key, err error, secret string) {
	w.Helper()
	w.want(want, *got, err, random, cmpopts.EquateEmpty())
	if got.ID == "" || !strings.HasPrefix(got.Key, secret) || (secret == "") != (got.Key == "") {
		w.Errorf("want an id and a secret %q, got %q and %q", secret, got.ID, got.Key)
	}
	w.recent(got.Created)
}

func authKeyRequest() tailscale.CreateKeyRequest {
	r := tailscale.CreateKeyRequest{ExpirySeconds: 3600, Description: "for tests"}
	r.Capabilities.Devices.Create.Reusable = true
	r.Capabilities.Devices.Create.Ephemeral = true
	r.Capabilities.Devices.Create.Preauthorized = true
	r.Capabilities.Devices.Create.Tags = []string{"tag:k8s"}
	return r
}

// wantAuthKey is the key of authKeyRequest. The client decodes seconds as a
// time.Duration (Key.ExpirySeconds in keys.go), which counts nanoseconds.
func wantAuthKey() tailscale.Key {
	r := authKeyRequest()
	return tailscale.Key{
		KeyType: "auth", Description: r.Description, Capabilities: r.Capabilities, Tags: []string{"tag:k8s"},
		ExpirySeconds: tailscale.PointerTo(time.Duration(r.ExpirySeconds)),
	}
}

func (w *world) wantNewAuthKey(got *tailscale.Key, err error) {
	w.Helper()
	w.ok(err)
	w.wantKey(wantAuthKey(), got, nil, "tskey-auth-")
	w.want(time.Hour, got.Expires.Sub(got.Created), nil)
	// It logs a device in, and is of no use to the API.
	w.ok(w.login(got.Key))
}

var (
	oauthClient = tailscale.CreateOAuthClientRequest{Scopes: []string{"devices:core", "dns:read"}, Tags: []string{"tag:k8s"}, Description: "a client"}
	identity    = tailscale.CreateFederatedIdentityRequest{
		Scopes: []string{"auth_keys"}, Tags: []string{"tag:k8s"}, Description: "an identity", Audience: "tests",
		Issuer: "https://issuer.example.com", Subject: "repo:example/*", CustomClaimRules: map[string]string{"ref": "refs/heads/main"},
	}
)

func wantOAuthClient(r tailscale.CreateOAuthClientRequest) tailscale.Key {
	return tailscale.Key{KeyType: "client", Description: r.Description, Scopes: r.Scopes, Tags: r.Tags}
}

func wantIdentity(r tailscale.CreateFederatedIdentityRequest) tailscale.Key {
	return tailscale.Key{
		KeyType: "federated", Description: r.Description, Scopes: r.Scopes, Tags: r.Tags,
		Audience: r.Audience, Issuer: r.Issuer, Subject: r.Subject, CustomClaimRules: r.CustomClaimRules,
	}
}

var keyDrivers = map[string]driver{
	"Keys.Create": func(w *world) {
		w.wantNewAuthKey(w.c.Keys().Create(w.ctx, authKeyRequest()))
	},
	"Keys.CreateAuthKey": func(w *world) { w.wantNewAuthKey(w.c.Keys().CreateAuthKey(w.ctx, authKeyRequest())) },
	"Keys.CreateOAuthClient": func(w *world) {
		k, err := w.c.Keys().CreateOAuthClient(w.ctx, oauthClient)
		w.ok(err)
		w.wantKey(wantOAuthClient(oauthClient), k, nil, "tskey-client-")
		// It is a credential from now on, with its scopes alone.
		c := &tailscale.Client{BaseURL: w.c.BaseURL, Auth: &tailscale.OAuth{ClientID: k.ID, ClientSecret: k.Key}}
		_, err = c.DNS().Nameservers(w.ctx)
		w.ok(err)
		w.refused(c.DNS().SetNameservers(w.ctx, []string{}), http.StatusForbidden)
	},
	"Keys.SetOAuthClient": func(w *world) {
		k, err := w.c.Keys().CreateOAuthClient(w.ctx, oauthClient)
		w.ok(err)
		r := tailscale.SetOAuthClientRequest{Scopes: []string{"dns"}, Description: "another"}
		_, err = w.c.Keys().SetOAuthClient(w.ctx, k.ID, r)
		w.ok(err)
		got, err := w.c.Keys().Get(w.ctx, k.ID)
		w.ok(err)
		w.wantKey(wantOAuthClient(tailscale.CreateOAuthClientRequest(r)), got, nil, "")
		w.want(k.ID, got.ID, nil)
	},
	"Keys.CreateFederatedIdentity": func(w *world) {
		k, err := w.c.Keys().CreateFederatedIdentity(w.ctx, identity)
		w.ok(err)
		w.wantKey(wantIdentity(identity), k, nil, "")
		r := identity
		r.Audience = ""
		k, err = w.c.Keys().CreateFederatedIdentity(w.ctx, r)
		w.ok(err)
		// The API chooses an audience.
		w.want("api.tailscale.com/"+k.ID, k.Audience, nil)
	},
	"Keys.SetFederatedIdentity": func(w *world) {
		k, err := w.c.Keys().CreateFederatedIdentity(w.ctx, identity)
		w.ok(err)
		r := tailscale.SetFederatedIdentityRequest(identity)
		r.Subject, r.CustomClaimRules, r.Description = "repo:example/one", nil, "one"
		_, err = w.c.Keys().SetFederatedIdentity(w.ctx, k.ID, r)
		w.ok(err)
		got, err := w.c.Keys().Get(w.ctx, k.ID)
		w.ok(err)
		w.wantKey(wantIdentity(tailscale.CreateFederatedIdentityRequest(r)), got, nil, "")
		w.want(k.ID, got.ID, nil)
	},
	"Keys.Get": func(w *world) {
		k, err := w.c.Keys().CreateAuthKey(w.ctx, authKeyRequest())
		w.ok(err)
		got, err := w.c.Keys().Get(w.ctx, k.ID)
		w.ok(err)
		w.wantKey(wantAuthKey(), got, nil, "")
		w.want(k.ID, got.ID, nil)
		_, err = w.c.Keys().Get(w.ctx, "kNobody11CNTRL")
		w.gone(err)
	},
	"Keys.List": func(w *world) {
		auth, err := w.c.Keys().CreateAuthKey(w.ctx, authKeyRequest())
		w.ok(err)
		client, err := w.c.Keys().CreateOAuthClient(w.ctx, oauthClient)
		w.ok(err)
		got, err := w.c.Keys().List(w.ctx, true)
		w.ok(err)
		want := map[string]tailscale.Key{auth.ID: wantAuthKey(), client.ID: wantOAuthClient(oauthClient)}
		byID := map[string]tailscale.Key{}
		for _, k := range got {
			byID[k.ID] = k
		}
		w.want(want, byID, nil, random, cmpopts.EquateEmpty())
		for _, k := range got {
			w.want("", k.Key, nil)
		}
		// The list of own keys depends on the credential.
		own, err := w.c.Keys().List(w.ctx, false)
		w.ok(err)
		for _, k := range own {
			w.want(byID[k.ID], k, nil)
		}
	},
	"Keys.Delete": func(w *world) {
		k, err := w.c.Keys().CreateAuthKey(w.ctx, authKeyRequest())
		w.ok(err)
		w.ok(w.c.Keys().Delete(w.ctx, k.ID))
		all, err := w.c.Keys().List(w.ctx, true)
		w.want([]tailscale.Key{}, all, err, cmpopts.EquateEmpty())
		// It can be read for a while.
		got, err := w.c.Keys().Get(w.ctx, k.ID)
		w.ok(err)
		w.want(true, got.Invalid, nil)
		w.recent(got.Revoked)
		if w.login(k.Key) == nil {
			w.Error("a key that was deleted logs a device in")
		}
		client, err := w.c.Keys().CreateOAuthClient(w.ctx, oauthClient)
		w.ok(err)
		w.ok(w.c.Keys().Delete(w.ctx, client.ID))
		_, err = w.c.Keys().Get(w.ctx, client.ID)
		w.gone(err)
	},
}
