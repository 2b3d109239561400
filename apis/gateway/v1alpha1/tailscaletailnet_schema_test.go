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
		"Changed":  {reason: "A credential can be replaced by another type.", obj: spec(identity), old: spec(oauth)},
		"None": {
			reason: "A tailnet without a credential cannot be reached.",
			obj:    spec("tailnet: '-'"),
			want:   "exactly one of oauthSecretName, workloadIdentity and apiKeySecret must be set",
		},
		"Two": {
			reason: "Only one credential is allowed.",
			obj:    spec(oauth + "\n" + apiKey),
			want:   "exactly one of oauthSecretName, workloadIdentity and apiKeySecret must be set",
		},
		"HalfOAuth": {
			reason: "The namespace of the Secret is required.",
			obj:    spec("oauthSecretName: oauth"),
			want:   "oauthSecretName and oauthSecretNamespace must be set together",
		},
		"Nowhere": {
			reason: "The namespace of the Tailnet is required.",
			obj:    spec("workloadIdentity: {clientID: abc, audience: api.tailscale.com/abc}"),
			want:   "exactly one of serviceAccountRef and namespace must be set",
		},
		"NotListed": {
			reason: "The namespace of the Tailnet must be allowed.",
			obj:    spec(own + "\nallowedNamespaces: {from: List, names: [apps]}"),
			want:   "allowedNamespaces.names must list workloadIdentity.namespace",
		},
		"Listed": {
			reason: "The namespace of the Tailnet is allowed.",
			obj:    spec(own + "\nallowedNamespaces: {from: List, names: [apps, tailscale]}"),
		},
		"Selector": {
			reason: "Namespaces can be selected by label.",
			obj:    spec(oauth + "\nallowedNamespaces: {from: Selector, selector: {matchLabels: {team: shop}}}"),
		},
		"NoSelector": {
			reason: "From Selector needs a selector.",
			obj:    spec(oauth + "\nallowedNamespaces: {from: Selector}"),
			want:   "selector must be set when from is Selector, and only then",
		},
		"IdleSelector": {
			reason: "A selector without from Selector is refused.",
			obj:    spec(oauth + "\nallowedNamespaces: {selector: {matchLabels: {team: shop}}}"),
			want:   "selector must be set when from is Selector, and only then",
		},
		"EmptyList": {
			reason: "From List needs names.",
			obj:    spec(oauth + "\nallowedNamespaces: {from: List}"),
			want:   "names must list at least one namespace",
		},
		"Grants": {
			reason: "Grants can limit each namespace.",
			obj: spec(oauth + `
allowedNamespaces:
  from: Grants
  grants:
  - names: [platform]
  - names: [shop]
    selector: {matchLabels: {team: shop}}
    kinds: [VIPService, Machine]
    tags: ['tag:shop']
    services: [shop, shop-*]
    domains: [shop.example.com]
    images: [registry.example.com:5000/mirror/tailscale, registry.example.com/*]
    networking: [Userspace]
    envFromSecrets: false
  - selector: {}
    tags: ['tag:guest']`),
		},
		"NoGrants": {
			reason: "From Grants needs grants.",
			obj:    spec(oauth + "\nallowedNamespaces: {from: Grants}"),
			want:   "grants must be set when from is Grants, and only then",
		},
		"IdleGrants": {
			reason: "Grants without from Grants are refused.",
			obj:    spec(oauth + "\nallowedNamespaces: {grants: [{names: [shop]}]}"),
			want:   "grants must be set when from is Grants, and only then",
		},
		"GrantToNobody": {
			reason: "A grant needs names or a selector.",
			obj:    spec(oauth + "\nallowedNamespaces: {from: Grants, grants: [{tags: ['tag:shop']}]}"),
			want:   "names or selector must be set",
		},
		"GrantNoTags": {
			reason: "An empty list could be mistaken for no limit.",
			obj:    spec(oauth + "\nallowedNamespaces: {from: Grants, grants: [{names: [shop], tags: []}]}"),
			want:   "should have at least 1 items",
		},
		"GrantSingleLabel": {
			reason: "A granted domain has at least two labels.",
			obj:    spec(oauth + "\nallowedNamespaces: {from: Grants, grants: [{names: [shop], domains: [internal]}]}"),
			want:   "domains",
		},
		"GrantImageTag": {
			reason: "A repository has no tag.",
			obj:    spec(oauth + "\nallowedNamespaces: {from: Grants, grants: [{names: [shop], images: ['example.com/tailscale:v1']}]}"),
			want:   "images",
		},
	}
	c := load(t, "tailscaletailnets")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			judge(t, tc.reason, c.validate(t, parse(t, tc.obj), parse(t, tc.old)), tc.want)
		})
	}
}
