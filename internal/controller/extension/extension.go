// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package extension creates the Secrets in which a dedicated extension of a TailscaleGateway stores
// its certificates. The extension has no permission to create them, which Kubernetes cannot limit to
// names: an account that may create any Secret may create one of type
// kubernetes.io/service-account-token, which Kubernetes fills with a token of any ServiceAccount of
// the namespace (kubernetes v1.35 pkg/controller/serviceaccount/tokens_controller.go). The function
// does not compose them, because Crossplane would pass their private keys to it.
package extension

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	"github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/access"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/setup"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

const name = "extension"

// Needs returns the kinds that must be installed before the controller starts: without
// TailscaleGateways there are no extensions.
func Needs() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.TailscaleGatewayKind)}
}

// Setup adds the controller to a manager, if the provider may watch ServiceAccounts: the chart
// grants it, and the provider works without.
func Setup(mgr ctrl.Manager, o setup.Options) error {
	ok, err := access.Allowed(context.Background(), mgr.GetClient(), "", schema.GroupResource{Resource: "serviceaccounts"}, "list", "watch")
	if err != nil {
		return err
	}
	if !ok {
		o.Logger.Info("Not allowed to watch ServiceAccounts, so dedicated extensions of TailscaleGateways get no Secrets and do not start")
		return nil
	}
	return errors.Wrap(ctrl.NewControllerManagedBy(mgr).
		Named(name).
		WithOptions(o.ForControllerRuntime()).
		For(&corev1.ServiceAccount{}, builder.OnlyMetadata, builder.WithPredicates(predicate.NewPredicateFuncs(isExtension))).
		Owns(&corev1.Secret{}, builder.OnlyMetadata, builder.MatchEveryOwner, builder.WithPredicates(setup.Deleted(isExtensionSecret))).
		Complete(o.Limit(name, NewReconciler(mgr.GetClient()))), "cannot set up the controller of extensions")
}

// account returns the metadata of a ServiceAccount, of which nothing else is read.
func account() *metav1.PartialObjectMetadata {
	return setup.Metadata(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
}

// isExtension reports whether a ServiceAccount is that of a dedicated extension. Another client can
// label its ServiceAccount, and gets two empty Secrets.
func isExtension(o client.Object) bool { return o.GetLabels()[meta.LabelExtension] != "" }

// isExtensionSecret reports whether a Secret is one of an extension.
func isExtensionSecret(o client.Object) bool {
	return o.GetLabels()[meta.LabelSecretType] == meta.SecretTypeExtension
}

// A Reconciler creates the Secrets of extensions.
type Reconciler struct{ kube client.Client }

// NewReconciler returns a Reconciler that uses the client.
func NewReconciler(kube client.Client) *Reconciler { return &Reconciler{kube: kube} }

// Reconcile creates the Secrets of a ServiceAccount that do not exist. Others stay as they are:
// the extension refuses those that its ServiceAccount does not own.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	a := account()
	if err := r.kube.Get(ctx, req.NamespacedName, a); err != nil {
		return reconcile.Result{}, errors.Wrap(client.IgnoreNotFound(err), "cannot get ServiceAccount")
	}
	if xpmeta.WasDeleted(a) || !isExtension(a) {
		return reconcile.Result{}, nil
	}
	for _, s := range secrets(a) {
		if err := r.kube.Create(ctx, s); err != nil && !kerrors.IsAlreadyExists(err) {
			return reconcile.Result{}, errors.Wrapf(err, "cannot create Secret %q", s.GetName())
		}
	}
	return reconcile.Result{}, nil
}

// secrets returns the Secrets of an extension without certificates. Their types cannot be changed
// later (kubernetes v1.35 pkg/apis/core/validation/validation.go, ValidateSecretUpdate).
func secrets(a *metav1.PartialObjectMetadata) []*corev1.Secret {
	objectMeta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: a.GetNamespace(), Name: name,
			Labels:          map[string]string{meta.LabelSecretType: meta.SecretTypeExtension},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ServiceAccount", Name: a.GetName(), UID: a.GetUID()}},
		}
	}
	return []*corev1.Secret{
		{ObjectMeta: objectMeta(names.ExtensionCertificates(a.GetName())), Type: corev1.SecretTypeOpaque},
		{
			ObjectMeta: objectMeta(names.ExtensionClient(a.GetName())), Type: corev1.SecretTypeTLS,
			Data: map[string][]byte{corev1.TLSCertKey: {}, corev1.TLSPrivateKeyKey: {}},
		},
	}
}
