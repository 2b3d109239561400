// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/clients"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/kinds"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/setup"
)

// Kind returns how Webhook objects are managed.
func Kind(_ setup.Options) kinds.Kind[*v1alpha1.Webhook] {
	return kinds.Kind[*v1alpha1.Webhook]{
		GroupVersionKind: v1alpha1.WebhookGroupVersionKind,
		Object:           &v1alpha1.Webhook{},
		List:             func() resource.ManagedList { return &v1alpha1.WebhookList{} },
		Connect: func(_ context.Context, env kinds.Env, c *clients.Connection, _ *v1alpha1.Webhook) (managed.TypedExternalClient[*v1alpha1.Webhook], error) {
			return &external{api: c.Client.Webhooks(), kube: env.Kube, record: env.Record}, nil
		},
		Rivals: &v1alpha1.Webhook{},
	}
}
