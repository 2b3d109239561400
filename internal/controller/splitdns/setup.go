// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package splitdns

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

// Setup adds the controller of SplitDNS objects to a manager.
func Setup(mgr ctrl.Manager, o common.Options) error {
	list := func() resource.ManagedList { return &v1alpha1.SplitDNSList{} }
	return kinds.Setup(mgr, o, kinds.Kind[*v1alpha1.SplitDNS]{
		GroupVersionKind: v1alpha1.SplitDNSGroupVersionKind,
		Object:           &v1alpha1.SplitDNS{},
		List:             list,
		Connect: func(_ context.Context, env kinds.Env, c *clients.Connection, _ *v1alpha1.SplitDNS) (managed.TypedExternalClient[*v1alpha1.SplitDNS], error) {
			return &external{api: c.Client, kube: env.Kube, live: env.Live}, nil
		},
		Untouched: func(mg *v1alpha1.SplitDNS) bool { return mg.GetAnnotations()[annotationRecord] == "" },
		Watch: func(b *builder.Builder, env kinds.Env) *builder.Builder {
			return claims.WatchReleased(b, env.Kube, &v1alpha1.DNS{}, list)
		},
	})
}
