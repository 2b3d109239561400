// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/clients"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/secrets"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/setup"
)

// A secretReconciler removes the finalizer from credentials Secrets that no config names any more,
// because the config names another Secret now or was deleted by force.
type secretReconciler struct{ kube client.Client }

// Reconcile releases a Secret that no config names.
func (r *secretReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	s := &corev1.Secret{}
	if err := r.kube.Get(ctx, req.NamespacedName, s); err != nil {
		return reconcile.Result{}, errors.Wrap(client.IgnoreNotFound(err), "cannot get Secret")
	}
	if !controllerutil.ContainsFinalizer(s, clients.Finalizer) {
		return reconcile.Result{}, nil
	}
	all, err := listConfigs(ctx, r.kube)
	if err != nil {
		return reconcile.Result{}, err
	}
	if slices.ContainsFunc(all, func(c configSecret) bool { return c.secretNamespace == s.GetNamespace() && c.secretName == s.GetName() }) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, clients.Release(ctx, r.kube, s)
}

// isHeld reports whether a Secret has the finalizer. Others are not read, because anyone may write the
// labels of Secrets.
func isHeld(o client.Object) bool { return controllerutil.ContainsFinalizer(o, clients.Finalizer) }

func setupRotated(mgr ctrl.Manager, o setup.Options) error {
	const name = "credentials-secrets"
	err := ctrl.NewControllerManagedBy(mgr).
		Named(name).
		WithOptions(o.ForControllerRuntime()).
		For(&corev1.Secret{}, builder.OnlyMetadata, builder.WithPredicates(secrets.OfType(clients.SecretTypeCredentials), predicate.NewPredicateFuncs(isHeld))).
		Watches(&v1alpha1.ClusterProviderConfig{}, secretsBefore()).
		Watches(&v1alpha1.ProviderConfig{}, secretsBefore()).
		Complete(o.Limit(name, &secretReconciler{kube: mgr.GetClient()}))
	return errors.Wrap(err, "cannot set up the controller of credentials' Secrets")
}

// secretsBefore returns a handler that finds the Secret that a config named before it changed or
// was deleted.
func secretsBefore() handler.EventHandler {
	enqueue := func(o client.Object, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		var c configSecret
		switch pc := o.(type) {
		case *v1alpha1.ClusterProviderConfig:
			c = configSecretOf(v1alpha1.ClusterProviderConfigKind, pc, pc.Spec)
		case *v1alpha1.ProviderConfig:
			c = configSecretOf(v1alpha1.ProviderConfigKind, pc, pc.Spec)
		}
		if c.secretName != "" {
			q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: c.secretNamespace, Name: c.secretName}})
		}
	}
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() {
				enqueue(e.ObjectOld, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			enqueue(e.Object, q)
		},
	}
}
