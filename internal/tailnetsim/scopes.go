// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"net/http"
	"slices"
	"strings"
)

// definedScopes are the scopes that a credential may have, each with a :read part:
// those that the OpenAPI document names, tailnets, and the names of older
// credentials (https://tailscale.com/kb/1623/trust-credentials#scopes).
var definedScopes = []string{
	"all", "account_settings", "api_access_tokens", "auth_keys", "device_invites",
	"devices:core", "devices:posture_attributes", "devices:routes", "dns", "feature_settings",
	"federated_keys", "log_streaming", "logs:configuration", "logs:network", "networking_settings",
	"oauth_keys", "policy_file", "services", "tailnets", "user_invites", "users", "webhooks",
	"acl", "devices", "logs", "network-logs", "routes",
}

func defined(scope string) bool {
	return slices.Contains(definedScopes, strings.TrimSuffix(scope, ":read"))
}

// undefined returns the first scope that Tailscale does not have, or nothing.
func undefined(scopes []string) string {
	for _, sc := range scopes {
		if !defined(sc) {
			return sc
		}
	}
	return ""
}

// allows reports whether the token has a scope, or for reading the :read part of it.
func (t *token) allows(scope string, read bool) bool {
	base, wantsRead := strings.CutSuffix(scope, ":read")
	read = read || wantsRead
	if slices.Contains(t.Scopes, "all") || slices.Contains(t.Scopes, base) {
		return true
	}
	// A bare "devices" is the old name of all device scopes.
	if major, _, ok := strings.Cut(base, ":"); ok && slices.Contains(t.Scopes, major) {
		return true
	}
	return read && (slices.Contains(t.Scopes, "all:read") || slices.Contains(t.Scopes, base+":read"))
}

// may reports whether the token has all scopes of a call.
func (t *token) may(rt route) bool {
	if rt.scope != "" && !t.allows(rt.scope, rt.method == http.MethodGet && !rt.full) {
		return false
	}
	return !slices.ContainsFunc(rt.extraScopes, func(sc string) bool { return !t.allows(sc, false) })
}

// forbid answers that the actor lacks a scope. The API does not say which
// (abn/ansible-tailscale-admin, tests/live/test_user_module_live.py).
func (c *call) forbid() {
	c.fail(http.StatusForbidden, "calling actor does not have enough permissions to perform this function")
}

// Scopes maps each call of the API, as Calls counts it, to the first OAuth scope
// that it needs.
func Scopes() map[string]string {
	out := map[string]string{}
	for _, rt := range routes() {
		out[rt.method+" "+rt.path] = rt.scope
	}
	return out
}

// known reports whether the API knows the actor's OAuth client everywhere, and
// answers if not: see FreshClient.
func (c *call) known() bool {
	f := c.s.switches.FreshClient
	t := c.s.st.Credentials[c.actor.Client]
	if f.Status == 0 || t == nil {
		return true
	}
	if t.Calls >= f.Calls && c.s.now().Sub(t.Created) >= f.Period.Duration {
		return true
	}
	t.Calls++
	if f.Status == http.StatusUnauthorized {
		c.fail(f.Status, "API token invalid")
		return false
	}
	c.fail(f.Status, "not found")
	return false
}
