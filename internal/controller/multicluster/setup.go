// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package multicluster holds the controller of the Multi-Cluster Services API (KEP-1645): it publishes the
// Services of ServiceExports to the clusters of a set, by a TailscaleServices, and creates a ServiceImport and
// a TailscaleEndpoints for what these clusters export. internal/multicluster decides what there is.
package multicluster

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/access"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/clients"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/setup"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/multicluster"
)

const name = "multicluster"

// Needs returns the kinds that must be installed before the controller starts. Those of the Multi-Cluster
// Services API are the user's choice.
func Needs() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		mcsv1beta1.SchemeGroupVersion.WithKind(mcsv1beta1.ServiceExportKindName),
		mcsv1beta1.SchemeGroupVersion.WithKind(mcsv1beta1.ServiceImportKindName),
		gatewayv1alpha1.SchemeGroupVersion.WithKind(gatewayv1alpha1.TailscaleServicesKind),
		gatewayv1alpha1.SchemeGroupVersion.WithKind(gatewayv1alpha1.TailscaleEndpointsKind),
		v1alpha1.ClusterProviderConfigGroupVersionKind,
	}
}

// permissions returns those that the chart grants on request.
func permissions() []access.Permission {
	var out []access.Permission
	for _, r := range []schema.GroupResource{{Group: mcsv1beta1.GroupName, Resource: mcsv1beta1.ServiceExportPluralName}, {Group: mcsv1beta1.GroupName, Resource: mcsv1beta1.ServiceImportPluralName}, corev1.Resource("services"), {Group: discoveryv1.GroupName, Resource: "endpointslices"}} {
		out = append(out, access.Permission{Resource: r, Verbs: []string{"list", "watch"}})
	}
	return out
}

// Setup adds the controller to a manager, as soon as the provider has the permissions: the chart grants them
// on request, and the provider works without.
func Setup(mgr ctrl.Manager, o setup.Options) error {
	return access.Await(mgr, o.Logger.WithValues("controller", name), "watch what the Multi-Cluster Services API needs",
		"ServiceExports have no effect; install the chart tailscale-gateway with provider.multiclusterServices=true", permissions(), func() error { return add(mgr, o) })
}

// add adds the controller to a manager.
func add(mgr ctrl.Manager, o setup.Options) error {
	imported, err := labels.NewRequirement(mcsv1beta1.LabelServiceName, selection.Exists, nil)
	if err != nil {
		return errors.Wrap(err, "cannot select EndpointSlices")
	}
	// The manager's cache holds only the provider's Services.
	services, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Service{}:            {Transform: stripService},
			&discoveryv1.EndpointSlice{}: {Label: labels.NewSelector().Add(*imported), Transform: cache.TransformStripManagedFields()},
		},
	})
	if err != nil {
		return errors.Wrap(err, "cannot make the cache of Services")
	}
	if err := mgr.Add(services); err != nil {
		return errors.Wrap(err, "cannot add the cache of Services")
	}
	exported := &records{
		kube: mgr.GetClient(), connector: clients.NewConnector(mgr.GetClient(), o.Pool, o.Permits, o.AllowedHosts), log: o.Logger.WithValues("controller", name),
		changed: make(chan event.TypedGenericEvent[*metav1.PartialObjectMetadata]), sets: map[string]*set{}, pending: map[string]bool{},
	}
	if err := mgr.Add(exported); err != nil {
		return errors.Wrap(err, "cannot add the reader of records")
	}
	r := &reconciler{kube: mgr.GetClient(), live: mgr.GetAPIReader(), services: services, records: exported, recorder: o.Recorder(mgr, mcsv1beta1.ServiceExportKindName), clock: o.Now, watched: o.WatchNamespaces}
	namespaceOf := func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: o.GetNamespace()}}}
	}
	// A change of an object of this controller by another client is undone. An object of another owner with the
	// name of one can keep it from being created.
	changed := predicate.And(predicate.NewPredicateFuncs(func(o client.Object) bool { return multicluster.Named(o.GetName()) }), predicate.GenerationChangedPredicate{})
	return errors.Wrap(ctrl.NewControllerManagedBy(mgr).
		Named(name).
		WithOptions(o.ForControllerRuntime()).
		Watches(&mcsv1beta1.ServiceExport{}, handler.EnqueueRequestsFromMapFunc(namespaceOf)).
		Watches(&mcsv1beta1.ServiceImport{}, handler.EnqueueRequestsFromMapFunc(namespaceOf), builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))).
		WatchesMetadata(composite(gatewayv1alpha1.TailscaleServicesKind), handler.EnqueueRequestsFromMapFunc(namespaceOf), builder.WithPredicates(changed)).
		WatchesMetadata(composite(gatewayv1alpha1.TailscaleEndpointsKind), handler.EnqueueRequestsFromMapFunc(namespaceOf), builder.WithPredicates(changed)).
		WatchesRawSource(source.Kind(services, &corev1.Service{}, handler.TypedEnqueueRequestsFromMapFunc(r.concerned))).
		WatchesRawSource(source.Kind(services, &discoveryv1.EndpointSlice{}, handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, s *discoveryv1.EndpointSlice) []reconcile.Request {
			return namespaceOf(ctx, s)
		}))).
		WatchesRawSource(source.Channel(exported.changed, handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, o *metav1.PartialObjectMetadata) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: o.GetName()}}}
		}))).
		Complete(o.Limit(name, r)), "cannot set up the controller of ServiceExports")
}

// composite returns an object of a composite kind for its metadata.
func composite(kind string) *metav1.PartialObjectMetadata {
	return setup.Metadata(gatewayv1alpha1.SchemeGroupVersion.WithKind(kind))
}

// stripService keeps of a Service what an export needs.
func stripService(o any) (any, error) {
	s, ok := o.(*corev1.Service)
	if !ok {
		return o, nil
	}
	s.ManagedFields, s.Annotations, s.Finalizers, s.OwnerReferences, s.Status = nil, nil, nil, nil, corev1.ServiceStatus{}
	labels := map[string]string{}
	for _, k := range []string{mcsv1beta1.LabelServiceName, meta.LabelEndpoints} {
		if v, ok := s.Labels[k]; ok {
			labels[k] = v
		}
	}
	s.Labels = labels
	return s, nil
}

// concerned returns the namespace of a Service that a ServiceExport names, or that leads to an imported one.
func (r *reconciler) concerned(ctx context.Context, s *corev1.Service) []reconcile.Request {
	out := []reconcile.Request{{NamespacedName: types.NamespacedName{Name: s.GetNamespace()}}}
	if s.Labels[mcsv1beta1.LabelServiceName] != "" {
		return out
	}
	if err := r.kube.Get(ctx, client.ObjectKeyFromObject(s), &mcsv1beta1.ServiceExport{}); err != nil {
		// Without a ServiceExport, which comes from a cache, nothing depends on the Service.
		return nil
	}
	return out
}
