// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"strings"

	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/test/lifecycle"
)

const noNaturalName = "only the ID identifies a client, so no other can be mistaken for it"

// trustCredentials returns the number of credentials of a type.
func trustCredentials(e *env, keyType string) int {
	all, err := e.tailnet.Keys().List(e.Context(), true)
	e.must(err)
	n := 0
	for _, k := range all {
		if k.KeyType == keyType {
			n++
		}
	}
	return n
}

func init() { addCase(oauthClientCase()) }

func oauthClientCase() kindCase[*v1alpha1.OAuthClient] {
	create := func(e *env, description string) *tsclient.Key {
		k, err := e.tailnet.Keys().CreateOAuthClient(e.Context(), tsclient.CreateOAuthClientRequest{Scopes: []string{"all:read"}, Description: description})
		e.must(err)
		return k
	}
	return kindCase[*v1alpha1.OAuthClient]{
		Kind:  v1alpha1.OAuthClientKind,
		Scope: "oauth_keys",
		New: func(*env) *v1alpha1.OAuthClient {
			return &v1alpha1.OAuthClient{Spec: v1alpha1.OAuthClientSpec{ForProvider: v1alpha1.OAuthClientParameters{
				Description: "made by us", Scopes: []v1alpha1.OAuthScope{"devices:core", "dns:read"}, Tags: []v1alpha1.Tag{"tag:k8s"},
			}}}
		},
		Others: func(e *env) func() (any, error) {
			id := create(e, "others").ID
			return func() (any, error) { return e.tailnet.Keys().Get(e.Context(), id) }
		},
		Count: func(e *env) int { return trustCredentials(e, "client") },
		Check: func(e *env, mg *v1alpha1.OAuthClient) error {
			k, err := e.tailnet.Keys().Get(e.Context(), xpmeta.GetExternalName(mg))
			if err != nil {
				return err
			}
			p := mg.Spec.ForProvider
			if !strings.HasSuffix(k.Description, " "+p.Description) {
				return errors.Errorf("the description is %q", k.Description)
			}
			return errors.Join(lifecycle.Differ(lifecycle.Texts(p.Scopes), lifecycle.Texts(k.Scopes)), lifecycle.Differ(lifecycle.Texts(p.Tags), lifecycle.Texts(k.Tags)))
		},
		Drift: func(e *env, mg *v1alpha1.OAuthClient) {
			_, err := e.tailnet.Keys().SetOAuthClient(e.Context(), xpmeta.GetExternalName(mg), tsclient.SetOAuthClientRequest{Scopes: []string{"all"}})
			e.must(err)
		},
		Update: func(_ *env, mg *v1alpha1.OAuthClient) {
			p := &mg.Spec.ForProvider
			p.Description, p.Scopes, p.Tags = "changed by us", []v1alpha1.OAuthScope{"auth_keys"}, []v1alpha1.Tag{"tag:web", "tag:db"}
		},
		Foreign:    func(e *env, _ *v1alpha1.OAuthClient) string { return create(e, "foreign").ID },
		Connection: []string{"client_id", "client_secret"},
		Skip:       map[step]string{stepRefuse: noNaturalName},
		Bad: []badInput[*v1alpha1.OAuthClient]{
			{Name: "NoScope", Break: func(mg *v1alpha1.OAuthClient) { mg.Spec.ForProvider.Scopes = []v1alpha1.OAuthScope{} }, Want: []string{"spec.forProvider.scopes", "at least 1"}},
			{Name: "BadScope", Break: func(mg *v1alpha1.OAuthClient) { mg.Spec.ForProvider.Scopes = []v1alpha1.OAuthScope{"Devices Core"} }, Want: []string{"spec.forProvider.scopes[0]", "must be a scope"}},
			{Name: "NoTag", Break: func(mg *v1alpha1.OAuthClient) { mg.Spec.ForProvider.Tags = nil }, Want: []string{"spec.forProvider", "tags must be set"}},
			{Name: "BadTag", Break: func(mg *v1alpha1.OAuthClient) { mg.Spec.ForProvider.Tags = []v1alpha1.Tag{"k8s"} }, Want: []string{"spec.forProvider.tags[0]", "must be tag:"}},
			{Name: "LongDescription", Break: func(mg *v1alpha1.OAuthClient) { mg.Spec.ForProvider.Description = strings.Repeat("a", 31) }, Want: []string{"spec.forProvider.description", "30"}},
			{Name: "OddDescription", Break: func(mg *v1alpha1.OAuthClient) { mg.Spec.ForProvider.Description = "a_b" }, Want: []string{"spec.forProvider.description"}},
		},
	}
}
