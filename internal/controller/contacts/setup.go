// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package contacts

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/clients"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/kinds"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/setup"
)

// Kind returns how Contacts objects are managed.
func Kind(_ setup.Options) kinds.Kind[*v1alpha1.Contacts] {
	return kinds.Kind[*v1alpha1.Contacts]{
		GroupVersionKind: v1alpha1.ContactsGroupVersionKind,
		Object:           &v1alpha1.Contacts{},
		List:             func() resource.ManagedList { return &v1alpha1.ContactsList{} },
		Connect: func(_ context.Context, env kinds.Env, c *clients.Connection, _ *v1alpha1.Contacts) (managed.TypedExternalClient[*v1alpha1.Contacts], error) {
			return &external{api: c.Client.Tailnet(), kube: env.Kube}, nil
		},
		// Contacts remain when their object is deleted.
		LeavesNothing: true,
		Rivals:        &v1alpha1.Contacts{},
	}
}
