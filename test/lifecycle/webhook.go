// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"

	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// Webhook returns the life of a Webhook to a host that does not exist, for rare events.
func Webhook(n Names) Case[*v1alpha1.Webhook] {
	find := func(ctx context.Context, tailnet *tsclient.Client, mg *v1alpha1.Webhook) (*tsclient.Webhook, error) {
		all, err := tailnet.Webhooks().List(ctx)
		if err != nil {
			return nil, err
		}
		for i := range all {
			if all[i].EndpointURL == mg.Spec.ForProvider.EndpointURL {
				return &all[i], nil
			}
		}
		return nil, errors.New("there is no such webhook")
	}
	return Case[*v1alpha1.Webhook]{
		New: func() *v1alpha1.Webhook {
			return &v1alpha1.Webhook{Spec: v1alpha1.WebhookSpec{ForProvider: v1alpha1.WebhookParameters{
				EndpointURL: "https://" + n.Prefix + ".example.com/shop", Subscriptions: []v1alpha1.WebhookSubscription{"nodeKeyExpired"},
			}}}
		},
		Update: func(mg *v1alpha1.Webhook) {
			mg.Spec.ForProvider.Subscriptions = []v1alpha1.WebhookSubscription{"nodeKeyExpired", "userRoleUpdated"}
		},
		Check: func(ctx context.Context, tailnet *tsclient.Client, mg *v1alpha1.Webhook) error {
			w, err := find(ctx, tailnet, mg)
			if err != nil {
				return err
			}
			return Differ(Texts(mg.Spec.ForProvider.Subscriptions), Texts(w.Subscriptions))
		},
		Drift: func(ctx context.Context, tailnet *tsclient.Client, mg *v1alpha1.Webhook) error {
			w, err := find(ctx, tailnet, mg)
			if err != nil {
				return err
			}
			_, err = tailnet.Webhooks().Update(ctx, w.EndpointID, []tsclient.WebhookSubscriptionType{tsclient.WebhookUserRoleUpdated})
			return err
		},
	}
}
