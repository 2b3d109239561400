// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/client/tailscale/v2"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
)

func TestOAuthClients(t *testing.T) {
	r := simtest.StartAPI(t, func(o *tailnetsim.Options) {
		o.Clients = append(o.Clients, tailnetsim.OAuthClient{ID: "keys", Secret: "tskey-client-keys", Scopes: []string{"auth_keys"}, Tags: []string{"tag:k8s-operator"}})
	})
	c := r.Client(t).Keys()
	created := must[*tailscale.Key](t)(c.CreateOAuthClient(t.Context(), tailscale.CreateOAuthClientRequest{Scopes: []string{"auth_keys"}, Tags: []string{"tag:k8s"}, Description: "one-1"}))
	if !strings.HasPrefix(created.Key, "tskey-client-"+created.ID) || created.KeyType != "client" {
		t.Errorf("a new client: id %s, type %s", created.ID, created.KeyType)
	}
	identity := must[*tailscale.Key](t)(c.CreateFederatedIdentity(t.Context(), tailscale.CreateFederatedIdentityRequest{
		Scopes: []string{"dns:read"}, Issuer: "https://issuer.example", Subject: "system:*", CustomClaimRules: map[string]string{"a": "b"},
	}))
	if identity.Key != "" || identity.Audience == "" || identity.KeyType != "federated" {
		t.Errorf("a new identity: audience %q, type %s", identity.Audience, identity.KeyType)
	}
	list := func(c *tailscale.KeysResource, all bool) []string {
		ids := []string{}
		for _, k := range must[[]tailscale.Key](t)(c.List(t.Context(), all)) {
			ids = append(ids, k.ID)
			if k.Key != "" {
				t.Error("the API shows a secret again")
			}
		}
		return ids
	}
	// They may be of the same second.
	if got := list(c, true); len(got) != 2 {
		t.Errorf("all keys: %v", got)
	}
	if diff := cmp.Diff([]string{created.ID}, list(c, false)); diff != "" {
		t.Errorf("own kind of keys: -want, +got:\n%s", diff)
	}

	// A created client can request tokens, and reads what its scopes permit.
	u := must[*url.URL](t)(url.Parse(r.URL))
	keysOf := func(k *tailscale.Key) *tailscale.KeysResource {
		return (&tailscale.Client{BaseURL: u, Auth: &tailscale.OAuth{ClientID: k.ID, ClientSecret: k.Key}}).Keys()
	}
	if diff := cmp.Diff([]string{}, list(keysOf(created), true)); diff != "" {
		t.Errorf("all keys that a narrow client sees: -want, +got:\n%s", diff)
	}
	if code, msg := status(t, keysOf(created).Delete(t.Context(), identity.ID)); code != http.StatusForbidden {
		t.Errorf("deleting an identity without its scope: %d %s", code, msg)
	}

	must[*tailscale.Key](t)(c.SetOAuthClient(t.Context(), created.ID, tailscale.SetOAuthClientRequest{Scopes: []string{"dns"}, Description: "two"}))
	got := must[*tailscale.Key](t)(c.Get(t.Context(), created.ID))
	if diff := cmp.Diff([]any{"two", []string{"dns"}, 0}, []any{got.Description, got.Scopes, len(got.Tags)}); diff != "" {
		t.Errorf("set: -want, +got:\n%s", diff)
	}
	must[*tailscale.Key](t)(c.SetFederatedIdentity(t.Context(), identity.ID, tailscale.SetFederatedIdentityRequest{Scopes: []string{"dns"}, Issuer: "https://issuer.example", Subject: "other"}))
	got = must[*tailscale.Key](t)(c.Get(t.Context(), identity.ID))
	if diff := cmp.Diff([]any{"other", identity.Audience}, []any{got.Subject, got.Audience}); diff != "" {
		t.Errorf("set: -want, +got:\n%s", diff)
	}

	cases := map[string]struct {
		reason string
		create func() error
		code   int
		want   string
	}{
		"NoScope": {
			reason: "A credential has a scope.", code: 400, want: "scopes cannot be empty",
			create: func() error {
				_, err := c.CreateOAuthClient(t.Context(), tailscale.CreateOAuthClientRequest{})
				return err
			},
		},
		"NoTag": {
			reason: "A credential that creates keys needs tags.", code: 400, want: "tags are required",
			create: func() error {
				_, err := c.CreateOAuthClient(t.Context(), tailscale.CreateOAuthClientRequest{Scopes: []string{"auth_keys"}})
				return err
			},
		},
		"BadDescription": {
			reason: "A description is short and plain.", code: 400, want: "description",
			create: func() error {
				_, err := c.CreateOAuthClient(t.Context(), tailscale.CreateOAuthClientRequest{Scopes: []string{"dns"}, Description: "a_b"})
				return err
			},
		},
		"PlainIssuer": {
			reason: "An issuer is reached by https.", code: 400, want: "issuer",
			create: func() error {
				_, err := c.CreateFederatedIdentity(t.Context(), tailscale.CreateFederatedIdentityRequest{Scopes: []string{"dns"}, Issuer: "http://a", Subject: "b"})
				return err
			},
		},
		"ReservedClaim": {
			reason: "The subject is no custom claim.", code: 400, want: "must not have sub",
			create: func() error {
				_, err := c.CreateFederatedIdentity(t.Context(), tailscale.CreateFederatedIdentityRequest{Scopes: []string{"dns"}, Issuer: "https://a", Subject: "b", CustomClaimRules: map[string]string{"sub": "x"}})
				return err
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if code, msg := status(t, tc.create()); code != tc.code || !strings.Contains(msg, tc.want) {
				t.Errorf("%s\nwant %d %q, got %d %q", tc.reason, tc.code, tc.want, code, msg)
			}
		})
	}
	mustDo(t, c.Delete(t.Context(), created.ID))
	mustDo(t, c.Delete(t.Context(), identity.ID))
	if got := list(c, true); len(got) != 0 {
		t.Errorf("after deleting: %v", got)
	}
}

func TestWebhooks(t *testing.T) {
	r := simtest.StartAPI(t)
	c := r.Client(t).Webhooks()
	events := []tailscale.WebhookSubscriptionType{tailscale.WebhookNodeCreated}
	created := must[*tailscale.Webhook](t)(c.Create(t.Context(), tailscale.CreateWebhookRequest{EndpointURL: "https://a.example/hook", ProviderType: tailscale.WebhookSlackProviderType, Subscriptions: events}))
	if created.Secret == nil || *created.Secret == "" || created.EndpointID == "" {
		t.Fatal("a new webhook has no secret or no id")
	}
	got := must[*tailscale.Webhook](t)(c.Get(t.Context(), created.EndpointID))
	if got.Secret != nil {
		t.Error("the API shows a secret again")
	}
	rotated := must[*tailscale.Webhook](t)(c.RotateSecret(t.Context(), created.EndpointID))
	if rotated.Secret == nil || *rotated.Secret == *created.Secret {
		t.Error("rotating gave no new secret")
	}
	must[*tailscale.Webhook](t)(c.Update(t.Context(), created.EndpointID, []tailscale.WebhookSubscriptionType{tailscale.WebhookPolicyUpdate}))
	mustDo(t, c.Test(t.Context(), created.EndpointID))
	list := must[[]tailscale.Webhook](t)(c.List(t.Context()))
	if len(list) != 1 || list[0].EndpointURL != "https://a.example/hook" || list[0].Secret != nil || list[0].Subscriptions[0] != tailscale.WebhookPolicyUpdate {
		t.Errorf("list: %d webhooks", len(list))
	}
	for name, req := range map[string]tailscale.CreateWebhookRequest{
		"NoURL":       {EndpointURL: "a", Subscriptions: events},
		"NoEvent":     {EndpointURL: "https://a"},
		"BadEvent":    {EndpointURL: "https://a", Subscriptions: []tailscale.WebhookSubscriptionType{"x"}},
		"BadProvider": {EndpointURL: "https://a", Subscriptions: events, ProviderType: "x"},
	} {
		_, err := c.Create(t.Context(), req)
		if code, _ := status(t, err); code != http.StatusBadRequest {
			t.Errorf("%s: %d", name, code)
		}
	}
	mustDo(t, c.Delete(t.Context(), created.EndpointID))
	if code, _ := status(t, c.Delete(t.Context(), created.EndpointID)); code != http.StatusNotFound {
		t.Errorf("deleting again: %d", code)
	}
}

func TestLogStreaming(t *testing.T) {
	r := simtest.StartAPI(t)
	c := r.Client(t).Logging()
	_, err := c.LogstreamConfiguration(t.Context(), tailscale.LogTypeConfig)
	if !tailscale.IsNotFound(err) {
		t.Errorf("no configuration: %v", err)
	}
	mustDo(t, c.SetLogstreamConfiguration(t.Context(), tailscale.LogTypeConfig, tailscale.SetLogstreamConfigurationRequest{
		DestinationType: tailscale.LogstreamElasticEndpoint, URL: "http://100.64.0.1/logs", User: "me", Token: "secret",
	}))
	got := must[*tailscale.LogstreamConfiguration](t)(c.LogstreamConfiguration(t.Context(), tailscale.LogTypeConfig))
	want := &tailscale.LogstreamConfiguration{
		LogType: tailscale.LogTypeConfig, DestinationType: tailscale.LogstreamElasticEndpoint,
		URL: "http://100.64.0.1/logs", User: "me", CompressionFormat: tailscale.CompressionFormatNone,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	cases := map[string]struct {
		reason string
		req    tailscale.SetLogstreamConfigurationRequest
		want   string
	}{
		"NoToken":     {reason: "Secrets are given each time.", req: tailscale.SetLogstreamConfigurationRequest{DestinationType: "splunk", URL: "https://a"}, want: "token"},
		"Unknown":     {reason: "Destinations are known.", req: tailscale.SetLogstreamConfigurationRequest{DestinationType: "x", URL: "https://a", Token: "t"}, want: "destinationType"},
		"S3User":      {reason: "S3 has no user.", req: tailscale.SetLogstreamConfigurationRequest{DestinationType: "s3", User: "u"}, want: "user"},
		"S3NoKey":     {reason: "An access key has a secret.", req: tailscale.SetLogstreamConfigurationRequest{DestinationType: "s3", S3Bucket: "b", S3Region: "r", S3AuthenticationType: "accesskey", S3AccessKeyID: "i"}, want: "s3SecretAccessKey"},
		"GCSNoSecret": {reason: "GCS wants credentials.", req: tailscale.SetLogstreamConfigurationRequest{DestinationType: "gcs", GCSBucket: "b"}, want: "gcsCredentials"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			code, msg := status(t, c.SetLogstreamConfiguration(t.Context(), tailscale.LogTypeNetwork, tc.req))
			if code != http.StatusBadRequest || !strings.Contains(msg, tc.want) {
				t.Errorf("%s\nwant 400 %q, got %d %q", tc.reason, tc.want, code, msg)
			}
		})
	}
	mustDo(t, c.DeleteLogstreamConfiguration(t.Context(), tailscale.LogTypeConfig))
	if code, _ := status(t, c.DeleteLogstreamConfiguration(t.Context(), tailscale.LogTypeConfig)); code != http.StatusNotFound {
		t.Errorf("deleting again: %d", code)
	}
}

func TestPostureIntegrations(t *testing.T) {
	r := simtest.StartAPI(t)
	c := r.Client(t).DevicePosture()
	req := tailscale.CreatePostureIntegrationRequest{Provider: tailscale.PostureIntegrationProviderFalcon, CloudID: "us-1", ClientID: "me", ClientSecret: "secret"}
	created := must[*tailscale.PostureIntegration](t)(c.CreateIntegration(t.Context(), req))
	want := &tailscale.PostureIntegration{ID: created.ID, Provider: "falcon", CloudID: "us-1", ClientID: "me"}
	if diff := cmp.Diff(want, must[*tailscale.PostureIntegration](t)(c.GetIntegration(t.Context(), created.ID))); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	_, err := c.CreateIntegration(t.Context(), req)
	if code, _ := status(t, err); code != http.StatusConflict {
		t.Errorf("a second one of the same provider: %d", code)
	}
	_, err = c.CreateIntegration(t.Context(), tailscale.CreatePostureIntegrationRequest{Provider: "kolide"})
	if code, _ := status(t, err); code != http.StatusBadRequest {
		t.Errorf("one without a secret: %d", code)
	}
	want.CloudID = "eu-1"
	got := must[*tailscale.PostureIntegration](t)(c.UpdateIntegration(t.Context(), created.ID, tailscale.UpdatePostureIntegrationRequest{CloudID: "eu-1"}))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("updated in part: -want, +got:\n%s", diff)
	}
	mustDo(t, r.SetPostureStatus("falcon", "access denied", 3))
	var shown struct {
		Integrations []struct {
			Status map[string]any `json:"status"`
		} `json:"integrations"`
	}
	call(t, r, http.MethodGet, "/api/v2/tailnet/-/posture/integrations", nil, &shown)
	if diff := cmp.Diff([]any{"access denied", 3.0}, []any{shown.Integrations[0].Status["error"], shown.Integrations[0].Status["matchedCount"]}); diff != "" {
		t.Errorf("status: -want, +got:\n%s", diff)
	}
	mustDo(t, c.DeleteIntegration(t.Context(), created.ID))
	if list := must[[]tailscale.PostureIntegration](t)(c.ListIntegrations(t.Context())); len(list) != 0 {
		t.Errorf("list: %v", list)
	}
}
