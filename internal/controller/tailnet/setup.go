// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnet

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/clients"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/kinds"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/secrets"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/setup"
)

// Kind returns how Tailnet objects are managed.
func Kind(_ setup.Options) kinds.Kind[*v1alpha1.Tailnet] {
	return kinds.Kind[*v1alpha1.Tailnet]{
		GroupVersionKind: v1alpha1.TailnetGroupVersionKind,
		Object:           &v1alpha1.Tailnet{},
		List:             func() resource.ManagedList { return &v1alpha1.TailnetList{} },
		LeavesNothing:    true,
		Connector: func(env kinds.Env, connect kinds.Connect) managed.TypedExternalConnector[*v1alpha1.Tailnet] {
			return &connector{
				connect: func(ctx context.Context, mg resource.ModernManaged) (*api, error) {
					c, err := connect(ctx, mg)
					if err != nil {
						return nil, err
					}
					return &api{devices: c.Client.Devices(), services: c.Client.Services(), dns: c.Client.DNS(), tailnet: c.Client.Tailnet()}, nil
				},
				list: func(ctx context.Context) ([]v1alpha1.Tailnet, error) {
					l := &v1alpha1.TailnetList{}
					err := env.Kube.List(ctx, l, client.UnsafeDisableDeepCopy)
					return l.Items, errors.Wrap(err, "cannot list Tailnets")
				},
			}
		},
		Poll:   poll,
		Rivals: &v1alpha1.Tailnet{},
		Watch: func(b *builder.Builder, env kinds.Env) *builder.Builder {
			return watchCredentials(b, env.Kube)
		},
	}
}

// watchCredentials reconciles Tailnets when a Secret or a config changes. A Tailnet with a rejected
// credential is synced and reports the rejection, so the watch for resources that are not synced
// does not cover it.
func watchCredentials(b *builder.Builder, kube client.Reader) *builder.Builder {
	desired := builder.WithPredicates(resource.DesiredStateChanged())
	return b.
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(forSecret(kube)),
			builder.OnlyMetadata, builder.WithPredicates(secrets.OfType(clients.SecretTypeCredentials))).
		Watches(&v1alpha1.ClusterProviderConfig{}, handler.EnqueueRequestsFromMapFunc(forConfig(kube, v1alpha1.ClusterProviderConfigKind)), desired).
		Watches(&v1alpha1.ProviderConfig{}, handler.EnqueueRequestsFromMapFunc(forConfig(kube, v1alpha1.ProviderConfigKind)), desired)
}

// forConfig returns a function that finds the Tailnets that use a provider config.
func forConfig(kube client.Reader, kind string) handler.MapFunc {
	return func(ctx context.Context, config client.Object) []reconcile.Request {
		return requests(ctx, kube, config.GetNamespace(), func(t *v1alpha1.Tailnet) bool {
			ref := t.GetProviderConfigReference()
			return ref != nil && ref.Kind == kind && ref.Name == config.GetName()
		})
	}
}

// forSecret returns a function that finds Tailnets when a credentials Secret changes. Tailnets are
// few and an observation is cheap, so it returns all of them.
func forSecret(kube client.Reader) handler.MapFunc {
	return func(ctx context.Context, _ client.Object) []reconcile.Request {
		return requests(ctx, kube, "", func(*v1alpha1.Tailnet) bool { return true })
	}
}

func requests(ctx context.Context, kube client.Reader, namespace string, wanted func(*v1alpha1.Tailnet) bool) []reconcile.Request {
	l := &v1alpha1.TailnetList{}
	if err := kube.List(ctx, l, client.InNamespace(namespace)); err != nil {
		// The list comes from a cache; the next poll repeats the observation anyway.
		return nil
	}
	var rs []reconcile.Request
	for i := range l.Items {
		if wanted(&l.Items[i]) {
			rs = append(rs, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: l.Items[i].GetNamespace(), Name: l.Items[i].GetName()}})
		}
	}
	return rs
}
