// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package postureintegration

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/clients"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/kinds"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/setup"
)

// Kind returns how PostureIntegration objects are managed.
func Kind(_ setup.Options) kinds.Kind[*v1alpha1.PostureIntegration] {
	return kinds.Kind[*v1alpha1.PostureIntegration]{
		GroupVersionKind: v1alpha1.PostureIntegrationGroupVersionKind,
		Object:           &v1alpha1.PostureIntegration{},
		List:             func() resource.ManagedList { return &v1alpha1.PostureIntegrationList{} },
		Connect: func(_ context.Context, env kinds.Env, c *clients.Connection, _ *v1alpha1.PostureIntegration) (managed.TypedExternalClient[*v1alpha1.PostureIntegration], error) {
			return &external{api: c.Client.Posture(), kube: env.Kube}, nil
		},
		Rivals: &v1alpha1.PostureIntegration{},
	}
}
