// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnet

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/claims"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/clients"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/common"
)

// Setup adds the controller of Tailnets to a manager.
func Setup(mgr ctrl.Manager, o common.Options) error {
	connect := clients.NewConnector(mgr.GetClient(), o.Pool)
	r := o.Reconciler(mgr, v1alpha1.TailnetGroupVersionKind,
		managed.WithTypedExternalConnector[*v1alpha1.Tailnet](&connector{
			connect: func(ctx context.Context, mg resource.ModernManaged) (api, error) {
				c, err := connect.Connect(ctx, mg)
				if err != nil {
					return nil, err
				}
				return c.Client, nil
			},
			list: func(ctx context.Context) ([]v1alpha1.Tailnet, error) {
				l := &v1alpha1.TailnetList{}
				err := mgr.GetClient().List(ctx, l, client.UnsafeDisableDeepCopy)
				return l.Items, errors.Wrap(err, "cannot list Tailnets")
			},
		}),
		managed.WithDeterministicExternalName(true),
		managed.WithPollIntervalHook(common.Jitter(poll)),
	)
	if err := o.RecordState(mgr, &v1alpha1.TailnetList{}); err != nil {
		return err
	}
	b := ctrl.NewControllerManagedBy(mgr).
		Named(managed.ControllerName(v1alpha1.TailnetGroupVersionKind.GroupKind().String())).
		WithOptions(o.ForControllerRuntime()).
		For(&v1alpha1.Tailnet{}, builder.WithPredicates(resource.DesiredStateChanged())).
		// A Secret that was mended must act at once.
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(forSecret(mgr.GetClient())),
			builder.WithPredicates(common.SecretsOfType(clients.SecretTypeCredentials))).
		Watches(&v1alpha1.ClusterProviderConfig{}, handler.EnqueueRequestsFromMapFunc(forConfig(mgr.GetClient(), v1alpha1.ClusterProviderConfigKind)),
			builder.WithPredicates(resource.DesiredStateChanged())).
		Watches(&v1alpha1.ProviderConfig{}, handler.EnqueueRequestsFromMapFunc(forConfig(mgr.GetClient(), v1alpha1.ProviderConfigKind)),
			builder.WithPredicates(resource.DesiredStateChanged()))
	b = claims.WatchReleased(b, mgr.GetClient(), &v1alpha1.Tailnet{}, func() resource.ManagedList { return &v1alpha1.TailnetList{} })
	return errors.Wrap(b.Complete(o.Limit(v1alpha1.TailnetKind, r)), "cannot set up the controller of Tailnets")
}

// forConfig finds the Tailnets that use a provider config.
func forConfig(kube client.Reader, kind string) handler.MapFunc {
	return func(ctx context.Context, config client.Object) []reconcile.Request {
		return requests(ctx, kube, config.GetNamespace(), func(t *v1alpha1.Tailnet) bool {
			ref := t.GetProviderConfigReference()
			return ref != nil && ref.Kind == kind && ref.Name == config.GetName()
		})
	}
}

// forSecret finds Tailnets when a credentials Secret changed. They are few, and
// an observation is cheap: all of them are asked again.
func forSecret(kube client.Reader) handler.MapFunc {
	return func(ctx context.Context, _ client.Object) []reconcile.Request {
		return requests(ctx, kube, "", func(*v1alpha1.Tailnet) bool { return true })
	}
}

func requests(ctx context.Context, kube client.Reader, namespace string, wanted func(*v1alpha1.Tailnet) bool) []reconcile.Request {
	l := &v1alpha1.TailnetList{}
	if err := kube.List(ctx, l, client.InNamespace(namespace)); err != nil {
		// The list comes from a cache; the next poll finds them anyway.
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
