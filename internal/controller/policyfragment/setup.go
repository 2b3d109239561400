// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package policyfragment

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/clients"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/kinds"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/setup"
)

// Kind returns how PolicyFragment objects are managed.
func Kind(_ setup.Options) kinds.Kind[*v1alpha1.PolicyFragment] {
	warned := &warned{}
	return kinds.Kind[*v1alpha1.PolicyFragment]{
		GroupVersionKind: v1alpha1.PolicyFragmentGroupVersionKind,
		Object:           &v1alpha1.PolicyFragment{},
		List:             func() resource.ManagedList { return &v1alpha1.PolicyFragmentList{} },
		Connect: func(_ context.Context, env kinds.Env, c *clients.Connection, _ *v1alpha1.PolicyFragment) (managed.TypedExternalClient[*v1alpha1.PolicyFragment], error) {
			return &external{api: c.Client.PolicyFile(), clusterID: c.ClusterID, record: env.Record, warned: warned}, nil
		},
		// Entries are marked with their owner, so entries of a Create whose response was lost are
		// found immediately.
	}
}
