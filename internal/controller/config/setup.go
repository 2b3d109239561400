// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/providerconfig"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/clients"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/kinds"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/secrets"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/setup"
)

// Watched returns the kinds that must be installed before Setup runs. The users of configs are not
// among them, because an administrator may leave out any of these kinds.
func Watched() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		v1alpha1.ClusterProviderConfigGroupVersionKind,
		v1alpha1.ProviderConfigGroupVersionKind,
	}
}

// Setup adds the controllers of both kinds of configs, of their Secrets, and of the protection of
// packages to a manager.
func Setup(mgr ctrl.Manager, o setup.Options, users []kinds.User) error {
	for kind, object := range map[string]client.Object{
		v1alpha1.ClusterProviderConfigKind: &v1alpha1.ClusterProviderConfig{},
		v1alpha1.ProviderConfigKind:        &v1alpha1.ProviderConfig{},
	} {
		if err := setupKind(mgr, o, kind, object, users); err != nil {
			return errors.Wrapf(err, "cannot set up the controller of %ss", kind)
		}
	}
	if err := setupRotated(mgr, o); err != nil {
		return err
	}
	return setupProtection(mgr, o)
}

func setupKind(mgr ctrl.Manager, o setup.Options, kind string, object client.Object, users []kinds.User) error {
	name := providerconfig.ControllerName(kind)
	r := &Reconciler{
		kube:   mgr.GetClient(),
		kind:   kind,
		kinds:  users,
		pool:   o.Pool,
		log:    o.Logger.WithValues("controller", name),
		record: o.Recorder(mgr, kind),
	}
	c, err := ctrl.NewControllerManagedBy(mgr).
		Named(name).
		WithOptions(o.ForControllerRuntime()).
		For(object, builder.WithPredicates(resource.DesiredStateChanged())).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(forSecret(mgr.GetClient(), kind)),
			builder.OnlyMetadata, builder.WithPredicates(secrets.OfType(clients.SecretTypeCredentials))).
		Build(o.Limit(name, r))
	if err != nil {
		return err
	}
	for _, k := range users {
		if err := watch(mgr, o, c, kind, k); err != nil {
			return err
		}
	}
	return nil
}

// watch reconciles the config of a user when the user is made or deleted, or refers to another config.
// It starts as soon as the user's kind is installed.
func watch(mgr ctrl.Manager, o setup.Options, c controller.Controller, kind string, user kinds.User) error {
	start := func() error {
		return c.Watch(source.Kind(mgr.GetCache(), user.Object, handler.EnqueueRequestsFromMapFunc(forUser(kind)), usersChanged()))
	}
	if o.Gate == nil {
		return errors.Wrapf(start(), "cannot watch users of kind %s", user.GroupVersionKind.Kind)
	}
	o.Gate.Register(func() {
		if err := start(); err != nil {
			o.Logger.Info("Cannot watch the users of provider configs", "kind", user.GroupVersionKind.Kind, "error", err)
		}
	}, user.GroupVersionKind)
	return nil
}

// usersChanged returns a predicate that passes managed resources that are made, deleted, or refer
// to another config.
func usersChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		o, ok := e.ObjectOld.(resource.ModernManaged)
		n, ok2 := e.ObjectNew.(resource.ModernManaged)
		return ok && ok2 && !ptr.Equal(o.GetProviderConfigReference(), n.GetProviderConfigReference())
	}}
}

// forUser returns a function that finds the config that a managed resource refers to.
func forUser(kind string) handler.MapFunc {
	return func(_ context.Context, o client.Object) []reconcile.Request {
		mg, ok := o.(resource.ModernManaged)
		if !ok || mg.GetProviderConfigReference() == nil || mg.GetProviderConfigReference().Kind != kind {
			return nil
		}
		n := types.NamespacedName{Name: mg.GetProviderConfigReference().Name}
		if kind == v1alpha1.ProviderConfigKind {
			n.Namespace = mg.GetNamespace()
		}
		return []reconcile.Request{{NamespacedName: n}}
	}
}

// forSecret returns a function that finds the configs of a kind that name a Secret.
func forSecret(kube client.Reader, kind string) handler.MapFunc {
	return func(ctx context.Context, s client.Object) []reconcile.Request {
		all, err := listConfigs(ctx, kube)
		if err != nil {
			// The lists come from a cache, and the next resync repeats this.
			return nil
		}
		var rs []reconcile.Request
		for _, c := range all {
			if c.kind == kind && c.secretNamespace == s.GetNamespace() && c.secretName == s.GetName() {
				rs = append(rs, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(c.config)})
			}
		}
		return rs
	}
}
