// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package splitdns

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/clients"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/kinds"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/setup"
)

// Kind returns how SplitDNS objects are managed. DNS objects compete with them for domains.
func Kind(_ setup.Options) kinds.Kind[*v1alpha1.SplitDNS] {
	return kinds.Kind[*v1alpha1.SplitDNS]{
		GroupVersionKind: v1alpha1.SplitDNSGroupVersionKind,
		Object:           &v1alpha1.SplitDNS{},
		List:             func() resource.ManagedList { return &v1alpha1.SplitDNSList{} },
		Requires:         []schema.GroupVersionKind{v1alpha1.DNSGroupVersionKind},
		Connect: func(_ context.Context, env kinds.Env, c *clients.Connection, _ *v1alpha1.SplitDNS) (managed.TypedExternalClient[*v1alpha1.SplitDNS], error) {
			return &external{api: api{dns: c.Client.DNS(), tailnet: c.Client.Tailnet()}, kube: env.Kube, live: env.Live}, nil
		},
		Untouched: func(mg *v1alpha1.SplitDNS) bool { return !annotationRecord.Exists(mg) },
		Records:   []string{string(annotationRecord)},
		Facts:     facts,
		Rivals:    &v1alpha1.DNS{},
	}
}
