// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/clients"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/kinds"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/setup"
)

// Kind returns how DNS objects are managed.
func Kind(_ setup.Options) kinds.Kind[*v1alpha1.DNS] {
	return kinds.Kind[*v1alpha1.DNS]{
		GroupVersionKind: v1alpha1.DNSGroupVersionKind,
		Object:           &v1alpha1.DNS{},
		List:             func() resource.ManagedList { return &v1alpha1.DNSList{} },
		Connect: func(_ context.Context, env kinds.Env, c *clients.Connection, _ *v1alpha1.DNS) (managed.TypedExternalClient[*v1alpha1.DNS], error) {
			return &external{api: api{dns: c.Client.DNS(), tailnet: c.Client.Tailnet()}, kube: env.Kube, live: env.Live, events: env.Record}, nil
		},
		Untouched: func(mg *v1alpha1.DNS) bool { return !annotationRecord.Exists(mg) },
		Records:   []string{string(annotationRecord)},
		Facts:     facts,
		Rivals:    &v1alpha1.DNS{},
	}
}
