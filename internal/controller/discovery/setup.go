// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/clients"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/kinds"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/setup"
)

// Kind returns how Discovery objects are managed.
func Kind(_ setup.Options) kinds.Kind[*v1alpha1.Discovery] {
	return kinds.Kind[*v1alpha1.Discovery]{
		GroupVersionKind: v1alpha1.DiscoveryGroupVersionKind,
		Object:           &v1alpha1.Discovery{},
		List:             func() resource.ManagedList { return &v1alpha1.DiscoveryList{} },
		Connect: func(_ context.Context, env kinds.Env, c *clients.Connection, _ *v1alpha1.Discovery) (managed.TypedExternalClient[*v1alpha1.Discovery], error) {
			return &external{api: api{devices: c.Client.Devices(), services: c.Client.Services(), tailnet: c.Client.Tailnet()}, record: env.Record}, nil
		},
		LeavesNothing: true,
		Poll:          poll,
	}
}
