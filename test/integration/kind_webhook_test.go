// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

const hookURL = "https://hooks.example.com/tailnet"

func init() { addCase(webhookCase()) }

func webhookCase() kindCase[*v1alpha1.Webhook] {
	hook := func(e *env, url string) (*tsclient.Webhook, error) {
		all, err := e.tailnet.Webhooks().List(e.Context())
		if err != nil {
			return nil, err
		}
		for i := range all {
			if all[i].EndpointURL == url {
				return &all[i], nil
			}
		}
		return nil, errors.New("there is no such webhook")
	}
	create := func(e *env, url string) *tsclient.Webhook {
		w, err := e.tailnet.Webhooks().Create(e.Context(), tsclient.CreateWebhookRequest{
			EndpointURL: url, ProviderType: "slack", Subscriptions: []tsclient.WebhookSubscriptionType{tsclient.WebhookUserDeleted},
		})
		e.must(err)
		return w
	}
	return kindCase[*v1alpha1.Webhook]{
		Kind: v1alpha1.WebhookKind,
		New: func(*env) *v1alpha1.Webhook {
			return &v1alpha1.Webhook{Spec: v1alpha1.WebhookSpec{ForProvider: v1alpha1.WebhookParameters{
				EndpointURL: hookURL, ProviderType: "slack", Subscriptions: []v1alpha1.WebhookSubscription{"nodeCreated", "policyUpdate"},
			}}}
		},
		Others: func(e *env) func() (any, error) {
			create(e, "https://others.example.com/")
			return func() (any, error) { return hook(e, "https://others.example.com/") }
		},
		Count: func(e *env) int {
			all, err := e.tailnet.Webhooks().List(e.Context())
			e.must(err)
			return len(all)
		},
		Check: func(e *env, mg *v1alpha1.Webhook) error {
			w, err := hook(e, hookURL)
			if err != nil {
				return err
			}
			return differ(texts(mg.Spec.ForProvider.Subscriptions), texts(w.Subscriptions))
		},
		Drift: func(e *env, _ *v1alpha1.Webhook) {
			w, err := hook(e, hookURL)
			e.must(err)
			_, err = e.tailnet.Webhooks().Update(e.Context(), w.EndpointID, []tsclient.WebhookSubscriptionType{tsclient.WebhookUserCreated})
			e.must(err)
		},
		Update: func(_ *env, mg *v1alpha1.Webhook) {
			mg.Spec.ForProvider.Subscriptions = []v1alpha1.WebhookSubscription{"categoryTailnetManagement"}
		},
		Foreign: func(e *env, _ *v1alpha1.Webhook) string { return create(e, hookURL).EndpointID },
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
