// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package oauthclient

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/claims"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/clients"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/common"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/kinds"
)

// Setup adds the controller of OAuthClients to a manager.
func Setup(mgr ctrl.Manager, o common.Options) error {
	list := func() resource.ManagedList { return &v1alpha1.OAuthClientList{} }
	return kinds.Setup(mgr, o, kinds.Kind[*v1alpha1.OAuthClient]{
		GroupVersionKind: v1alpha1.OAuthClientGroupVersionKind,
		Object:           &v1alpha1.OAuthClient{},
		List:             list,
		Connect: func(_ context.Context, env kinds.Env, c *clients.Connection, _ *v1alpha1.OAuthClient) (managed.TypedExternalClient[*v1alpha1.OAuthClient], error) {
			return &external{api: c.Client, kube: env.Kube, record: env.Record, clusterID: c.ClusterID}, nil
		},
		Options: []managed.ReconcilerOption{managed.WithCreationGracePeriod(0)},
		Watch: func(b *builder.Builder, env kinds.Env) *builder.Builder {
			return claims.WatchReleased(b, env.Kube, &v1alpha1.OAuthClient{}, list)
		},
	})
}
