// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strings"
	"testing"
)

func TestTailscaleTailnetSchema(t *testing.T) {
	spec := func(lines string) string {
		return "metadata: {name: example}\nspec:\n  " + strings.ReplaceAll(lines, "\n", "\n  ")
	}
	const (
		oauth    = "oauthSecretName: oauth\noauthSecretNamespace: tailscale"
		apiKey   = "apiKeySecret: {name: token, namespace: tailscale}"
		identity = "workloadIdentity: {clientID: abc, audience: api.tailscale.com/abc, serviceAccountRef: {namespace: tailscale, name: gateway}}"
		own      = "workloadIdentity: {clientID: abc, audience: api.tailscale.com/abc, namespace: tailscale}"
	)
	cases := map[string]struct {
		reason string
		obj    string
		old    string
		want   string
	}{
		"OAuth":    {reason: "An OAuth client is a credential.", obj: spec(oauth)},
		"APIKey":   {reason: "An API access token is a credential.", obj: spec(apiKey)},
		"Identity": {reason: "A service account is a credential.", obj: spec(identity)},
		"Own":      {reason: "The provider's own service account is a credential.", obj: spec(own)},
		"Changed":  {reason: "A credential can take the place of another.", obj: spec(identity), old: spec(oauth)},
		"None": {
			reason: "A tailnet without a credential cannot be reached.",
			obj:    spec("tailnet: '-'"),
			want:   "exactly one of oauthSecretName, workloadIdentity and apiKeySecret must be set",
		},
		"Two": {
			reason: "Of two credentials none is the one.",
			obj:    spec(oauth + "\n" + apiKey),
			want:   "exactly one of oauthSecretName, workloadIdentity and apiKeySecret must be set",
		},
		"HalfOAuth": {
			reason: "A Secret has a namespace.",
			obj:    spec("oauthSecretName: oauth"),
			want:   "oauthSecretName and oauthSecretNamespace must be set together",
		},
		"Nowhere": {
			reason: "The Tailnet must be somewhere.",
			obj:    spec("workloadIdentity: {clientID: abc, audience: api.tailscale.com/abc}"),
			want:   "exactly one of serviceAccountRef and namespace must be set",
		},
		"NotListed": {
			reason: "The Tailnet must be allowed where it is.",
			obj:    spec(own + "\nallowedNamespaces: {from: List, names: [apps]}"),
			want:   "allowedNamespaces.names must list workloadIdentity.namespace",
		},
		"Listed": {
			reason: "The Tailnet is allowed where it is.",
			obj:    spec(own + "\nallowedNamespaces: {from: List, names: [apps, tailscale]}"),
		},
		"Selector": {
			reason: "Namespaces can be selected by label.",
			obj:    spec(oauth + "\nallowedNamespaces: {from: Selector, selector: {matchLabels: {team: shop}}}"),
		},
		"NoSelector": {
			reason: "A selector that is missing is a mistake.",
			obj:    spec(oauth + "\nallowedNamespaces: {from: Selector}"),
			want:   "selector must be set when from is Selector, and only then",
		},
		"IdleSelector": {
			reason: "A selector that means nothing is a mistake.",
			obj:    spec(oauth + "\nallowedNamespaces: {selector: {matchLabels: {team: shop}}}"),
			want:   "selector must be set when from is Selector, and only then",
		},
		"EmptyList": {
			reason: "A list that allows nobody is a mistake.",
			obj:    spec(oauth + "\nallowedNamespaces: {from: List}"),
			want:   "names must list at least one namespace",
		},
	}
	c := load(t, "tailscaletailnets")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			judge(t, tc.reason, c.validate(t, parse(t, tc.obj), parse(t, tc.old)), tc.want)
		})
	}
}
