// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package dns

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

// Setup adds the controller of DNS objects to a manager.
func Setup(mgr ctrl.Manager, o common.Options) error {
	list := func() resource.ManagedList { return &v1alpha1.DNSList{} }
	return kinds.Setup(mgr, o, kinds.Kind[*v1alpha1.DNS]{
		GroupVersionKind: v1alpha1.DNSGroupVersionKind,
		Object:           &v1alpha1.DNS{},
		List:             list,
		Connect: func(_ context.Context, env kinds.Env, c *clients.Connection, _ *v1alpha1.DNS) (managed.TypedExternalClient[*v1alpha1.DNS], error) {
			return &external{api: c.Client, kube: env.Kube, live: env.Live, record: env.Record}, nil
		},
		Untouched: func(mg *v1alpha1.DNS) bool { return mg.GetAnnotations()[annotationRecord] == "" },
		Watch: func(b *builder.Builder, env kinds.Env) *builder.Builder {
			return claims.WatchReleased(b, env.Kube, &v1alpha1.DNS{}, list)
		},
	})
}
