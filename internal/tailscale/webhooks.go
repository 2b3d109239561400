// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"
	"time"

	tsclient "tailscale.com/client/tailscale/v2"
)

const scopeWebhooks = "webhooks"

// A Webhook sends events of a tailnet to a URL. Only the response to the call that created it
// contains its secret.
type Webhook = tsclient.Webhook

func isWebhook(w Webhook, id string) bool { return w.EndpointID == id }

// A WebhooksResource calls the API for webhooks.
type WebhooksResource struct{ *core }

func (c WebhooksResource) loadWebhooks(ctx context.Context) ([]Webhook, time.Time, error) {
	l, err := c.api.Webhooks().List(ctx)
	return l, time.Time{}, classify(err, scopeWebhooks, true)
}

// webhooks returns the shared list of webhooks.
func (c WebhooksResource) webhooks() *list[Webhook] {
	return listOfKind(c.core, "webhooks", isWebhook, func(c *core) loader[Webhook] { return WebhooksResource{c}.loadWebhooks })
}

// Webhooks returns the tailnet's webhooks from a shared list.
func (c WebhooksResource) Webhooks(ctx context.Context, staleness Staleness) ([]Webhook, error) {
	l, _, err := c.webhooks().get(ctx, c.maxAge(staleness))
	return l, err
}

// Webhook returns a webhook by its ID. It always sends a request.
func (c WebhooksResource) Webhook(ctx context.Context, id string) (*Webhook, error) {
	w, err := c.api.Webhooks().Get(ctx, id)
	return w, classify(err, scopeWebhooks, false)
}

// CreateWebhook creates a webhook. An empty provider type means Tailscale's own event format. Only
// this response contains the secret.
func (c WebhooksResource) CreateWebhook(ctx context.Context, url, providerType string, subscriptions []string) (*Webhook, error) {
	w, err := c.api.Webhooks().Create(ctx, tsclient.CreateWebhookRequest{
		EndpointURL:   url,
		ProviderType:  tsclient.WebhookProviderType(providerType),
		Subscriptions: subscriptionTypes(subscriptions),
	})
	if err != nil {
		return nil, c.webhooks().createFailed(classify(err, scopeWebhooks, true))
	}
	return w, c.webhooks().add(w.EndpointID, withoutSecret(*w))
}

// SetWebhookSubscriptions replaces the events that a webhook sends.
func (c WebhooksResource) SetWebhookSubscriptions(ctx context.Context, id string, subscriptions []string) error {
	return c.webhooks().write(id, func() (fold[Webhook], error) {
		if _, err := c.api.Webhooks().Update(ctx, id, subscriptionTypes(subscriptions)); err != nil {
			return nil, classify(err, scopeWebhooks, false)
		}
		return edited(func(w *Webhook) { w.Subscriptions = subscriptionTypes(subscriptions) }), nil
	})
}

// RotateWebhookSecret generates a new secret for a webhook and returns it.
func (c WebhooksResource) RotateWebhookSecret(ctx context.Context, id string) (string, error) {
	w, err := c.api.Webhooks().RotateSecret(ctx, id)
	if err != nil {
		return "", classify(err, scopeWebhooks, false)
	}
	if w.Secret == nil || *w.Secret == "" {
		return "", &Error{Class: ClassUnavailable, Scope: scopeWebhooks, Message: "the answer has no secret"}
	}
	return *w.Secret, nil
}

// DeleteWebhook removes a webhook. It returns no error if the webhook does not exist.
func (c WebhooksResource) DeleteWebhook(ctx context.Context, id string) error {
	return c.webhooks().write(id, func() (fold[Webhook], error) {
		return removed[Webhook], ignoreNotFound(classify(c.api.Webhooks().Delete(ctx, id), scopeWebhooks, false))
	})
}

// withoutSecret returns the webhook without its secret, so that lists contain no secrets.
func withoutSecret(w Webhook) Webhook {
	w.Secret = nil
	return w
}

func subscriptionTypes(names []string) []tsclient.WebhookSubscriptionType {
	out := make([]tsclient.WebhookSubscriptionType, 0, len(names))
	for _, s := range names {
		out = append(out, tsclient.WebhookSubscriptionType(s))
	}
	return out
}
