// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/test/lifecycle"
)

func init() { addCase(webhookCase()) }

func webhookCase() kindCase[*v1alpha1.Webhook] {
	c := lifecycle.Webhook(caseNames)
	create := func(e *env, url string) *tsclient.Webhook {
		w, err := e.tailnet.Webhooks().Create(e.Context(), tsclient.CreateWebhookRequest{
			EndpointURL: url, ProviderType: "slack", Subscriptions: []tsclient.WebhookSubscriptionType{tsclient.WebhookUserDeleted},
		})
		e.must(err)
		return w
	}
	return kindCase[*v1alpha1.Webhook]{
		Kind:   v1alpha1.WebhookKind,
		Shared: c,
		New: func(*env) *v1alpha1.Webhook {
			mg := c.New()
			mg.Spec.ForProvider.ProviderType = "slack"
			return mg
		},
		Others: func(e *env) func() (any, error) {
			id := create(e, "https://others.example.com/").EndpointID
			return func() (any, error) { return e.tailnet.Webhooks().Get(e.Context(), id) }
		},
		Count: func(e *env) int {
			all, err := e.tailnet.Webhooks().List(e.Context())
			e.must(err)
			return len(all)
		},
		Foreign: func(e *env, mg *v1alpha1.Webhook) string {
			return create(e, mg.Spec.ForProvider.EndpointURL).EndpointID
		},
		Adopt: func(mg *v1alpha1.Webhook, _ string) {
			mg.Spec.ForProvider.AdoptionPolicy = v1alpha1.AdoptionPolicyAdopt
		},
		Refused:    "adoptionPolicy",
		Connection: []string{"id", "secret"},
		Bad: []badInput[*v1alpha1.Webhook]{
			{Name: "PlainHTTP", Break: func(mg *v1alpha1.Webhook) { mg.Spec.ForProvider.EndpointURL = "http://hooks.example.com" }, Want: []string{"spec.forProvider.endpointURL", "must be an https URL"}},
			{Name: "NoHost", Break: func(mg *v1alpha1.Webhook) { mg.Spec.ForProvider.EndpointURL = "https:///x" }, Want: []string{"spec.forProvider.endpointURL", "must be an https URL"}},
			{Name: "NoEvent", Break: func(mg *v1alpha1.Webhook) { mg.Spec.ForProvider.Subscriptions = []v1alpha1.WebhookSubscription{} }, Want: []string{"spec.forProvider.subscriptions", "at least 1"}},
			{Name: "UnknownEvent", Break: func(mg *v1alpha1.Webhook) {
				mg.Spec.ForProvider.Subscriptions = []v1alpha1.WebhookSubscription{"nodeBored"}
			}, Want: []string{"spec.forProvider.subscriptions[0]", "nodeCreated"}},
			{Name: "UnknownProvider", Break: func(mg *v1alpha1.Webhook) { mg.Spec.ForProvider.ProviderType = "fax" }, Want: []string{"spec.forProvider.providerType", "slack"}},
			{Name: "OtherURLLater", OnUpdate: true, Break: func(mg *v1alpha1.Webhook) { mg.Spec.ForProvider.EndpointURL = "https://other.example.com" }, Want: []string{"spec.forProvider.endpointURL", "is immutable"}},
			{Name: "OtherProviderLater", OnUpdate: true, Break: func(mg *v1alpha1.Webhook) { mg.Spec.ForProvider.ProviderType = "discord" }, Want: []string{"spec.forProvider", "providerType is immutable"}},
			{Name: "NoProviderLater", OnUpdate: true, Break: func(mg *v1alpha1.Webhook) { mg.Spec.ForProvider.ProviderType = "" }, Want: []string{"spec.forProvider", "providerType is immutable"}},
		},
	}
}
