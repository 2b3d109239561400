// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/test/lifecycle"
)

func init() { addCase(postureIntegrationCase()) }

func postureIntegrationCase() kindCase[*v1alpha1.PostureIntegration] {
	find := func(e *env, provider tsclient.PostureIntegrationProvider) (*tsclient.PostureIntegration, error) {
		all, err := e.tailnet.DevicePosture().ListIntegrations(e.Context())
		if err != nil {
			return nil, err
		}
		for i := range all {
			if all[i].Provider == provider {
				return &all[i], nil
			}
		}
		return nil, errors.New("there is no such integration")
	}
	create := func(e *env, provider tsclient.PostureIntegrationProvider) string {
		p, err := e.tailnet.DevicePosture().CreateIntegration(e.Context(), tsclient.CreatePostureIntegrationRequest{
			Provider: provider, CloudID: "theirs", ClientSecret: "their-secret-notasecret",
		})
		e.must(err)
		return p.ID
	}
	return kindCase[*v1alpha1.PostureIntegration]{
		Kind: v1alpha1.PostureIntegrationKind,
		Seed: seedToken,
		New: func(*env) *v1alpha1.PostureIntegration {
			return &v1alpha1.PostureIntegration{Spec: v1alpha1.PostureIntegrationSpec{ForProvider: v1alpha1.PostureIntegrationParameters{
				Provider: "falcon", CloudID: "us-1", ClientID: "client", ClientSecretSecretRef: *tokenRef("token"),
			}}}
		},
		Others: func(e *env) func() (any, error) {
			create(e, "kolide")
			return func() (any, error) { return find(e, "kolide") }
		},
		Count: func(e *env) int {
			all, err := e.tailnet.DevicePosture().ListIntegrations(e.Context())
			e.must(err)
			return len(all)
		},
		Check: func(e *env, mg *v1alpha1.PostureIntegration) error {
			i, err := find(e, "falcon")
			if err != nil {
				return err
			}
			p := mg.Spec.ForProvider
			return lifecycle.Differ([]string{p.CloudID, p.ClientID, p.TenantID}, []string{i.CloudID, i.ClientID, i.TenantID})
		},
		Drift: func(e *env, _ *v1alpha1.PostureIntegration) {
			i, err := find(e, "falcon")
			e.must(err)
			_, err = e.tailnet.DevicePosture().UpdateIntegration(e.Context(), i.ID, tsclient.UpdatePostureIntegrationRequest{CloudID: "us-gov"})
			e.must(err)
		},
		Update: func(_ *env, mg *v1alpha1.PostureIntegration) {
			p := &mg.Spec.ForProvider
			p.CloudID, p.ClientID, p.ClientSecretSecretRef = "eu-1", "", *tokenRef("other")
		},
		Foreign: func(e *env, _ *v1alpha1.PostureIntegration) string { return create(e, "falcon") },
		Adopt: func(mg *v1alpha1.PostureIntegration, _ string) {
			mg.Spec.ForProvider.AdoptionPolicy = v1alpha1.AdoptionPolicyAdopt
		},
		Refused: "adoptionPolicy",
		Bad: []badInput[*v1alpha1.PostureIntegration]{
			{Name: "UnknownProvider", Break: func(mg *v1alpha1.PostureIntegration) { mg.Spec.ForProvider.Provider = "fax" }, Want: []string{"spec.forProvider.provider", "falcon"}},
			{Name: "ProviderLater", OnUpdate: true, Break: func(mg *v1alpha1.PostureIntegration) { mg.Spec.ForProvider.Provider = "intune" }, Want: []string{"spec.forProvider.provider", "is immutable"}},
		},
	}
}
