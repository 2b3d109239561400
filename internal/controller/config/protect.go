// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	kmeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	gateway "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/setup"
)

const (
	// HookName is the name of a ConfigMap that Helm deletes before it uninstalls the chart
	// tailscale-gateway: see its templates/uninstall.yaml.
	HookName = "tailscale-gateway-uninstall"

	// protectionReason appears in Crossplane's answer to a request that deletes a protected object.
	protectionReason = "Without the provider, the objects of its provider configs stay in the cluster and in the tailnets. " +
		"First delete what docs/uninstall.md names, until no provider config is left: " +
		"kubectl get clusterproviderconfigs.tailnet.gateway.tailscale.com,providerconfigs.tailnet.gateway.tailscale.com -A"

	// protector is the field manager of usages, and the value of their label.
	protector      = "provider-tailscale-protection"
	labelManagedBy = "app.kubernetes.io/managed-by"
)

// Kinds of Crossplane 2, see its packages apis/v2/protection/v1beta1, apis/v2/apiextensions/v2 and
// apis/v2/pkg/v1.
var (
	clusterUsageKind = schema.GroupVersionKind{Group: "protection.crossplane.io", Version: "v1beta1", Kind: "ClusterUsage"}
	usageKind        = schema.GroupVersionKind{Group: "protection.crossplane.io", Version: "v1beta1", Kind: "Usage"}
	definitionKind   = schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v2", Kind: "CompositeResourceDefinition"}
)

const packageGroup = "pkg.crossplane.io"

// A protected object cannot be deleted while provider configs exist.
type protected struct {
	apiVersion string
	kind       string
	namespace  string // Empty for an object of the cluster.
	name       string
}

// A protectionReconciler makes Crossplane refuse the deletion of the provider's package, of the
// Configurations with the project's composite resources, and of the chart, while a provider config
// exists. Otherwise the provider would vanish before the finalizers that only it removes. The alpha
// feature EnableProviderDeletionProtection of Crossplane 2.4 protects the Provider in the same way
// (internal/controller/apiextensions/managed of Crossplane); it is off by default.
type protectionReconciler struct {
	kube      client.Client
	live      client.Reader
	namespace string
	log       logging.Logger
}

// setupProtection adds the controller that protects the packages to a manager.
func setupProtection(mgr ctrl.Manager, o setup.Options) error {
	const name = "packages-in-use"
	r := &protectionReconciler{kube: mgr.GetClient(), live: mgr.GetAPIReader(), namespace: o.Namespace, log: o.Logger.WithValues("controller", name)}
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
	})
	err := ctrl.NewControllerManagedBy(mgr).
		Named(name).
		WithOptions(o.ForControllerRuntime()).
		Watches(&v1alpha1.ClusterProviderConfig{}, all, builder.WithPredicates(existenceChanged())).
		Watches(&v1alpha1.ProviderConfig{}, all, builder.WithPredicates(existenceChanged())).
		Complete(o.Limit(name, r))
	return errors.Wrap(err, "cannot set up the protection of packages")
}

// existenceChanged returns a predicate that passes objects that are made or deleted, and the
// cache's periodic resync.
func existenceChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion()
	}}
}

// Reconcile protects the packages if a provider config exists, and otherwise removes the protection.
func (r *protectionReconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	_, err := r.kube.RESTMapper().RESTMapping(clusterUsageKind.GroupKind(), clusterUsageKind.Version)
	if kmeta.IsNoMatchError(err) {
		r.log.Debug("This cluster has no packages: Crossplane's usages are not installed", "error", err)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, errors.Wrap(err, "cannot find Crossplane's usages")
	}
	all, err := listConfigs(ctx, r.kube)
	if err != nil {
		return reconcile.Result{}, err
	}
	hook := &unstructured.Unstructured{}
	hook.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	hook.SetNamespace(r.namespace)
	hook.SetName(HookName)
	if len(all) == 0 {
		if err := r.protect(ctx, nil); err != nil {
			return reconcile.Result{}, err
		}
		// Crossplane allows this as soon as it has removed the usage, which may take a retry.
		return reconcile.Result{}, errors.Wrapf(client.IgnoreNotFound(r.kube.Delete(ctx, hook)), "cannot delete ConfigMap %q", HookName)
	}
	want, err := r.packages(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	hook.SetLabels(map[string]string{labelManagedBy: protector})
	if err := r.kube.Apply(ctx, client.ApplyConfigurationFromUnstructured(hook), client.FieldOwner(protector), client.ForceOwnership); err != nil {
		return reconcile.Result{}, errors.Wrapf(err, "cannot apply ConfigMap %q", HookName)
	}
	return reconcile.Result{}, r.protect(ctx, append(want, protected{apiVersion: "v1", kind: "ConfigMap", namespace: r.namespace, name: HookName}))
}

// packages returns the packages to protect. Crossplane adds each package as an owner to the
// definitions that it installs (GetPackageOwnerReference in its internal/controller/pkg/revision).
func (r *protectionReconciler) packages(ctx context.Context) ([]protected, error) {
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	const name = "clusterproviderconfigs." + v1alpha1.Group
	if err := r.live.Get(ctx, types.NamespacedName{Name: name}, crd); err != nil {
		return nil, errors.Wrapf(err, "cannot get CustomResourceDefinition %q", name)
	}
	out := owners(nil, crd, "Provider")

	xrds := &metav1.PartialObjectMetadataList{}
	xrds.SetGroupVersionKind(definitionKind)
	if err := r.live.List(ctx, xrds); err != nil && !kmeta.IsNoMatchError(err) {
		return nil, errors.Wrap(err, "cannot list CompositeResourceDefinitions")
	}
	for i := range xrds.Items {
		if strings.HasSuffix(xrds.Items[i].GetName(), "."+gateway.Group) {
			out = owners(out, &xrds.Items[i], "Configuration")
		}
	}

	return out, nil
}

// owners adds the packages of a kind that own a definition to a list without duplicates.
func owners(packages []protected, definition metav1.Object, kind string) []protected {
	for _, o := range definition.GetOwnerReferences() {
		p := protected{apiVersion: o.APIVersion, kind: o.Kind, name: o.Name}
		gv, err := schema.ParseGroupVersion(o.APIVersion)
		if err != nil || gv.Group != packageGroup || o.Kind != kind || slices.Contains(packages, p) {
			continue
		}
		packages = append(packages, p)
	}
	return packages
}

// protect applies one usage for each object, and deletes all others of this controller.
func (r *protectionReconciler) protect(ctx context.Context, want []protected) error {
	keep := map[client.ObjectKey]bool{}
	for _, p := range want {
		u := usage(p)
		keep[client.ObjectKeyFromObject(u)] = true
		if err := r.kube.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(protector), client.ForceOwnership); err != nil {
			return errors.Wrapf(err, "cannot protect %s %q", p.kind, p.name)
		}
	}
	for _, gvk := range []schema.GroupVersionKind{clusterUsageKind, usageKind} {
		l := &metav1.PartialObjectMetadataList{}
		l.SetGroupVersionKind(gvk)
		opts := []client.ListOption{client.MatchingLabels{labelManagedBy: protector}}
		if gvk == usageKind {
			opts = append(opts, client.InNamespace(r.namespace))
		}
		if err := r.live.List(ctx, l, opts...); err != nil {
			return errors.Wrapf(err, "cannot list %ss", gvk.Kind)
		}
		for i := range l.Items {
			u := &l.Items[i]
			if keep[client.ObjectKeyFromObject(u)] {
				continue
			}
			u.SetGroupVersionKind(gvk)
			if err := r.kube.Delete(ctx, u); err != nil && !kerrors.IsNotFound(err) {
				return errors.Wrapf(err, "cannot delete %s %q", gvk.Kind, u.GetName())
			}
		}
	}
	return nil
}

// usage returns the usage by which Crossplane refuses to delete an object.
func usage(p protected) *unstructured.Unstructured {
	gvk := clusterUsageKind
	if p.namespace != "" {
		gvk = usageKind
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"of": map[string]any{
			"apiVersion":  p.apiVersion,
			"kind":        p.kind,
			"resourceRef": map[string]any{"name": p.name},
		},
		"reason": protectionReason,
	}}}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace(p.namespace)
	u.SetName(strings.ToLower(p.kind) + "." + p.name)
	u.SetLabels(map[string]string{labelManagedBy: protector})
	return u
}
