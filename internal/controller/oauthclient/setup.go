// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package oauthclient

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/clients"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/kinds"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/setup"
)

// Kind returns how OAuthClient objects are managed.
func Kind(_ setup.Options) kinds.Kind[*v1alpha1.OAuthClient] {
	return kinds.Kind[*v1alpha1.OAuthClient]{
		GroupVersionKind: v1alpha1.OAuthClientGroupVersionKind,
		Object:           &v1alpha1.OAuthClient{},
		List:             func() resource.ManagedList { return &v1alpha1.OAuthClientList{} },
		Connect: func(_ context.Context, env kinds.Env, c *clients.Connection, _ *v1alpha1.OAuthClient) (managed.TypedExternalClient[*v1alpha1.OAuthClient], error) {
			return &external{api: c.Client.TrustCredentials(), kube: env.Kube, record: env.Record, clusterID: c.ClusterID}, nil
		},
		Rivals: &v1alpha1.OAuthClient{},
	}
}
