// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/secrets"
)

// WatchConnectable requeues resources that are not synced when a provider config or a credentials
// Secret changes. Otherwise, they would wait for the end of their backoff.
func WatchConnectable(b *builder.Builder, kube client.Reader, list func() resource.ManagedList) *builder.Builder {
	h := handler.EnqueueRequestsFromMapFunc(unsynced(kube, list))
	desired := builder.WithPredicates(resource.DesiredStateChanged())
	return b.
		Watches(&corev1.Secret{}, h, builder.OnlyMetadata, builder.WithPredicates(secrets.OfType(SecretTypeCredentials))).
		Watches(&v1alpha1.ClusterProviderConfig{}, h, desired).
		Watches(&v1alpha1.ProviderConfig{}, h, desired)
}

// unsynced returns a function that finds the resources of a kind that are not synced.
func unsynced(kube client.Reader, list func() resource.ManagedList) handler.MapFunc {
	return func(ctx context.Context, _ client.Object) []reconcile.Request {
		l := list()
		if err := kube.List(ctx, l); err != nil {
			// The list comes from a cache, and each resource is retried anyway.
			return nil
		}
		var rs []reconcile.Request
		for _, mg := range l.GetItems() {
			if mg.GetCondition(xpv2.TypeSynced).Status != corev1.ConditionTrue {
				rs = append(rs, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(mg)})
			}
		}
		return rs
	}
}
