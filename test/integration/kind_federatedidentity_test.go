// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/test/lifecycle"
)

func init() { addCase(federatedIdentityCase()) }

func federatedIdentityCase() kindCase[*v1alpha1.FederatedIdentity] {
	create := func(e *env) string {
		k, err := e.tailnet.Keys().CreateFederatedIdentity(e.Context(), tsclient.CreateFederatedIdentityRequest{
			Scopes: []string{"all:read"}, Issuer: "https://issuer.example.com", Subject: "theirs",
		})
		e.must(err)
		return k.ID
	}
	return kindCase[*v1alpha1.FederatedIdentity]{
		Kind:  v1alpha1.FederatedIdentityKind,
		Scope: "federated_keys",
		New: func(*env) *v1alpha1.FederatedIdentity {
			return &v1alpha1.FederatedIdentity{Spec: v1alpha1.FederatedIdentitySpec{ForProvider: v1alpha1.FederatedIdentityParameters{
				Issuer: "https://issuer.example.com", Subject: "system:serviceaccount:default:*", Scopes: []v1alpha1.OAuthScope{"dns"},
				CustomClaimRules: map[string]string{"cluster": "one"},
			}}}
		},
		Others: func(e *env) func() (any, error) {
			id := create(e)
			return func() (any, error) { return e.tailnet.Keys().Get(e.Context(), id) }
		},
		Count: func(e *env) int { return trustCredentials(e, "federated") },
		Check: func(e *env, mg *v1alpha1.FederatedIdentity) error {
			k, err := e.tailnet.Keys().Get(e.Context(), xpmeta.GetExternalName(mg))
			if err != nil {
				return err
			}
			p := mg.Spec.ForProvider
			if k.Audience == "" || (p.Audience != "" && k.Audience != p.Audience) {
				return errors.Errorf("the audience is %q", k.Audience)
			}
			return errors.Join(
				lifecycle.Differ([]string{p.Issuer, p.Subject}, []string{k.Issuer, k.Subject}), lifecycle.Differ(p.CustomClaimRules, k.CustomClaimRules),
				lifecycle.Differ(lifecycle.Texts(p.Scopes), lifecycle.Texts(k.Scopes)), lifecycle.Differ(lifecycle.Texts(p.Tags), lifecycle.Texts(k.Tags)))
		},
		Drift: func(e *env, mg *v1alpha1.FederatedIdentity) {
			_, err := e.tailnet.Keys().SetFederatedIdentity(e.Context(), xpmeta.GetExternalName(mg), tsclient.SetFederatedIdentityRequest{
				Scopes: []string{"all"}, Issuer: "https://evil.example.com", Subject: "*",
			})
			e.must(err)
		},
		Update: func(_ *env, mg *v1alpha1.FederatedIdentity) {
			p := &mg.Spec.ForProvider
			p.Description, p.Audience, p.CustomClaimRules = "changed by us", "https://audience.example.com", map[string]string{"cluster": "two*"}
			p.Scopes, p.Tags = []v1alpha1.OAuthScope{"auth_keys"}, []v1alpha1.Tag{"tag:web"}
		},
		Foreign:    func(e *env, _ *v1alpha1.FederatedIdentity) string { return create(e) },
		Connection: []string{"client_id", "audience"},
		Skip:       map[step]string{stepRefuse: noNaturalName},
		Bad: []badInput[*v1alpha1.FederatedIdentity]{
			{Name: "PlainIssuer", Break: func(mg *v1alpha1.FederatedIdentity) { mg.Spec.ForProvider.Issuer = "http://issuer.example.com" }, Want: []string{"spec.forProvider.issuer"}},
			{Name: "NoSubject", Break: func(mg *v1alpha1.FederatedIdentity) { mg.Spec.ForProvider.Subject = "" }, Want: []string{"spec.forProvider.subject", "at least 1"}},
			{Name: "ReservedClaim", Break: func(mg *v1alpha1.FederatedIdentity) {
				mg.Spec.ForProvider.CustomClaimRules = map[string]string{"sub": "x"}
			}, Want: []string{"spec.forProvider.customClaimRules", "must not contain sub, iss or aud"}},
			{Name: "NoTag", Break: func(mg *v1alpha1.FederatedIdentity) {
				mg.Spec.ForProvider.Scopes = []v1alpha1.OAuthScope{"auth_keys"}
			}, Want: []string{"spec.forProvider", "tags must be set"}},
		},
	}
}
