// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package policyfragment

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/clients"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/common"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/kinds"
)

// Setup adds the controller of PolicyFragments to a manager.
func Setup(mgr ctrl.Manager, o common.Options) error {
	warned := &warned{}
	return kinds.Setup(mgr, o, kinds.Kind[*v1alpha1.PolicyFragment]{
		GroupVersionKind: v1alpha1.PolicyFragmentGroupVersionKind,
		Object:           &v1alpha1.PolicyFragment{},
		List:             func() resource.ManagedList { return &v1alpha1.PolicyFragmentList{} },
		Connect: func(_ context.Context, env kinds.Env, c *clients.Connection, _ *v1alpha1.PolicyFragment) (managed.TypedExternalClient[*v1alpha1.PolicyFragment], error) {
			return &external{api: c.Client, clusterID: c.ClusterID, record: env.Record, warned: warned}, nil
		},
		// Entries are marked with their owner: those that a lost Create wrote are
		// found at once.
		Options: []managed.ReconcilerOption{managed.WithCreationGracePeriod(0)},
	})
}
