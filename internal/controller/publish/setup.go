// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package publish holds the controllers that publish a Service by its load balancer class or a label. They write
// kinds of this project into the Service's namespace, a TailscaleServices and one TailscaleEndpoints for all, and the
// load balancer status of a Service of the class. They do not change the Service otherwise, so that tools which
// compare it with a manifest find no difference, and nothing keeps it from being deleted.
package publish

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/access"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/clients"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/setup"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// Names of the controllers.
const (
	name        = "publish"
	nameProxies = "publish-proxies"
)

// Needs returns the kinds that must be installed before the controllers start.
func Needs() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		gatewayv1alpha1.SchemeGroupVersion.WithKind(gatewayv1alpha1.TailscaleServicesKind),
		gatewayv1alpha1.SchemeGroupVersion.WithKind(gatewayv1alpha1.TailscaleEndpointsKind),
		v1alpha1.ClusterProviderConfigGroupVersionKind,
	}
}

// permissions returns those that the chart grants on request. The status of Services distinguishes them from those of
// other features.
func permissions() []access.Permission {
	return []access.Permission{
		{Resource: corev1.Resource("services"), Verbs: []string{"list", "watch"}},
		{Resource: corev1.Resource("services/status"), Verbs: []string{"patch"}},
		{Resource: schema.GroupResource{Group: gatewayv1alpha1.Group, Resource: "tailscaleservices"}, Verbs: []string{"create", "patch", "delete"}},
		{Resource: schema.GroupResource{Group: gatewayv1alpha1.Group, Resource: "tailscaleendpoints"}, Verbs: []string{"create", "delete"}},
	}
}

// Setup adds the controllers to a manager, as soon as the provider has the permissions: the chart grants them on
// request, and the provider works without.
func Setup(mgr ctrl.Manager, o setup.Options) error {
	return access.Await(mgr, o.Logger.WithValues("controller", name), "publish Services with a class or label",
		"install the chart tailscale-gateway with provider.publishServices=true", permissions(), func() error { return add(mgr, o) })
}

// add adds the controllers to a manager.
func add(mgr ctrl.Manager, o setup.Options) error {
	watched, err := serviceCaches(mgr, o)
	if err != nil {
		return err
	}
	ours, err := ourCache(mgr, o)
	if err != nil {
		return err
	}
	var found services
	for _, c := range append(watched, ours) {
		if err := mgr.Add(c); err != nil {
			return errors.Wrap(err, "cannot add a cache of published Services")
		}
	}
	for _, c := range watched {
		found = append(found, c)
	}
	recorder := o.Recorder(mgr, kindService)
	r := &reconciler{
		kube: mgr.GetClient(), services: found, ours: ours, recorder: recorder, clock: o.Now, operator: o.OperatorServices,
		grants: clients.NewConnector(mgr.GetClient(), o.Pool, o.Permits, o.AllowedHosts),
	}
	p := &proxiesReconciler{kube: mgr.GetClient(), services: found, ours: ours, recorder: recorder, clock: o.Now, operator: o.OperatorServices}
	if err := addServices(mgr, o, r, watched, ours); err != nil {
		return err
	}
	return addProxies(mgr, o, p, ours)
}

// addServices adds the controller of Services.
func addServices(mgr ctrl.Manager, o setup.Options, r *reconciler, watched []cache.Cache, ours cache.Cache) error {
	b := ctrl.NewControllerManagedBy(mgr).
		Named(name).
		WithOptions(o.ForControllerRuntime()).
		// Another owner's object keeps ours from being created, until it is gone.
		WatchesMetadata(composite(gatewayv1alpha1.TailscaleServicesKind), &handler.EnqueueRequestForObject{}, builder.WithPredicates(foreign())).
		WatchesMetadata(composite(gatewayv1alpha1.TailscaleEndpointsKind), handler.EnqueueRequestsFromMapFunc(r.beside), builder.WithPredicates(existence())).
		Watches(&v1alpha1.ClusterProviderConfig{}, handler.EnqueueRequestsFromMapFunc(r.everywhere), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Kind(ours, &gatewayv1alpha1.TailscaleServices{}, &handler.TypedEnqueueRequestForObject[*gatewayv1alpha1.TailscaleServices]{})).
		WatchesRawSource(source.Kind(ours, &gatewayv1alpha1.TailscaleEndpoints{}, handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, e *gatewayv1alpha1.TailscaleEndpoints) []reconcile.Request {
			return r.beside(ctx, e)
		}), judged()))
	for _, c := range watched {
		b = b.WatchesRawSource(source.Kind(c, &corev1.Service{}, &handler.TypedEnqueueRequestForObject[*corev1.Service]{}, asking(o.OperatorServices)))
	}
	return errors.Wrap(b.Complete(o.Limit(name, r)), "cannot set up the controller of published Services")
}

// addProxies adds the controller of the TailscaleEndpoints that host published Services.
func addProxies(mgr ctrl.Manager, o setup.Options, p *proxiesReconciler, ours cache.Cache) error {
	return errors.Wrap(ctrl.NewControllerManagedBy(mgr).
		Named(nameProxies).
		WithOptions(o.ForControllerRuntime()).
		WatchesMetadata(composite(gatewayv1alpha1.TailscaleEndpointsKind), &handler.EnqueueRequestForObject{}, builder.WithPredicates(setup.Deleted(func(client.Object) bool { return true }))).
		WatchesRawSource(source.Kind(ours, &gatewayv1alpha1.TailscaleEndpoints{}, &handler.TypedEnqueueRequestForObject[*gatewayv1alpha1.TailscaleEndpoints]{}, judged())).
		WatchesRawSource(source.Kind(ours, &gatewayv1alpha1.TailscaleServices{}, handler.TypedEnqueueRequestsFromMapFunc(selected))).
		Complete(o.Limit(nameProxies, p)), "cannot set up the controller of the proxies of published Services")
}

// selected returns the TailscaleEndpoints that a TailscaleServices of this package selects.
func selected(_ context.Context, s *gatewayv1alpha1.TailscaleServices) []reconcile.Request {
	endpoints := s.Spec.Selector.MatchLabels[meta.LabelEndpoints]
	if endpoints == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: s.GetNamespace(), Name: endpoints}}}
}

// beside returns the Services of an object's namespace that may ask.
func (r *reconciler) beside(ctx context.Context, o client.Object) []reconcile.Request {
	return sortedKeys(r.services.requests(ctx, client.InNamespace(o.GetNamespace())))
}

// everywhere returns the Services of all namespaces that may ask.
func (r *reconciler) everywhere(ctx context.Context, _ client.Object) []reconcile.Request {
	return sortedKeys(r.services.requests(ctx))
}

// foreign passes the events of objects that this package has not created, except for changes of them.
func foreign() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return !owns(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return owns(e.ObjectOld) != owns(e.ObjectNew) },
	}
}

// existence passes the events of objects that come or go.
func existence() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return (e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
	}}
}

// judged passes the events of TailscaleEndpoints that come or go, or whose condition has changed.
func judged() predicate.TypedPredicate[*gatewayv1alpha1.TailscaleEndpoints] {
	return predicate.TypedFuncs[*gatewayv1alpha1.TailscaleEndpoints]{UpdateFunc: func(e event.TypedUpdateEvent[*gatewayv1alpha1.TailscaleEndpoints]) bool {
		return (e.ObjectOld.DeletionTimestamp == nil) != (e.ObjectNew.DeletionTimestamp == nil) ||
			!e.ObjectOld.Status.GetCondition(meta.TypeTailnetAccepted).Equal(e.ObjectNew.Status.GetCondition(meta.TypeTailnetAccepted))
	}}
}

// asking passes the events of Services that ask, or did. The TailscaleServices of one that asked while the provider
// did not run requests it.
func asking(operator bool) predicate.TypedPredicate[*corev1.Service] {
	return predicate.TypedFuncs[*corev1.Service]{
		CreateFunc: func(e event.TypedCreateEvent[*corev1.Service]) bool { return asks(e.Object, operator) },
		UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Service]) bool {
			return (asks(e.ObjectOld, operator) || asks(e.ObjectNew, operator)) && !equality.Semantic.DeepEqual(withoutVersion(e.ObjectOld), withoutVersion(e.ObjectNew))
		},
		DeleteFunc: func(e event.TypedDeleteEvent[*corev1.Service]) bool {
			return asks(e.Object, operator) || e.DeleteStateUnknown
		},
	}
}

// withoutVersion returns a Service without its resource version: what the cache keeps of it decides whether it has
// changed.
func withoutVersion(s *corev1.Service) *corev1.Service {
	out := s.DeepCopy()
	out.ResourceVersion = ""
	return out
}

// serviceCaches returns caches of the Services that may ask. The API server selects by type and label. Those that
// ask in the way of Tailscale's operator can have an annotation alone, by which it does not.
func serviceCaches(mgr ctrl.Manager, o setup.Options) ([]cache.Cache, error) {
	selections := []cache.ByObject{
		{Field: fields.OneTermEqualSelector("spec.type", string(corev1.ServiceTypeLoadBalancer))},
		{Label: labels.SelectorFromSet(labels.Set{meta.LabelPublish: "true"})},
	}
	if o.OperatorServices {
		selections = []cache.ByObject{{}}
	}
	var out []cache.Cache
	for _, s := range selections {
		s.Transform = stripService(o.OperatorServices)
		c, err := cache.New(mgr.GetConfig(), cache.Options{
			HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
			DefaultNamespaces: setup.CachedNamespaces(o.WatchNamespaces), ByObject: map[client.Object]cache.ByObject{&corev1.Service{}: s},
		})
		if err != nil {
			return nil, errors.Wrap(err, "cannot make a cache of Services")
		}
		out = append(out, c)
	}
	return out, nil
}

// ourCache returns a cache of the objects that this package has created.
func ourCache(mgr ctrl.Manager, o setup.Options) (cache.Cache, error) {
	s := runtime.NewScheme()
	if err := gatewayv1alpha1.AddToScheme(s); err != nil {
		return nil, errors.Wrap(err, "cannot build scheme")
	}
	c, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: s, Mapper: mgr.GetRESTMapper(), DefaultNamespaces: setup.CachedNamespaces(o.WatchNamespaces),
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{meta.LabelManagedBy: meta.ManagedByPublish}),
		DefaultTransform:     stripOurs,
	})
	return c, errors.Wrap(err, "cannot make a cache of what publishes Services")
}

// stripService returns a function that keeps of a Service what a request needs, and of one that does not ask only
// what identifies it. Annotations are cut, because a tenant may write a megabyte of any.
func stripService(operator bool) func(any) (any, error) {
	return func(o any) (any, error) {
		s, ok := o.(*corev1.Service)
		if !ok {
			return o, nil
		}
		out := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name, UID: s.UID, ResourceVersion: s.ResourceVersion}}
		if !asks(s, operator) {
			return out, nil
		}
		if v, ok := s.Labels[meta.LabelPublish]; ok {
			out.Labels = map[string]string{meta.LabelPublish: v}
		}
		out.Annotations = map[string]string{}
		for _, key := range annotations {
			if v, ok := s.Annotations[key]; ok {
				out.Annotations[key] = v[:min(len(v), maxAnnotation+1)]
			}
		}
		if isOperated(s) {
			out.Finalizers = []string{operatorFinalizer}
		}
		out.Spec = corev1.ServiceSpec{Type: s.Spec.Type, LoadBalancerClass: s.Spec.LoadBalancerClass}
		if s.Spec.ClusterIP == corev1.ClusterIPNone {
			out.Spec.ClusterIP = s.Spec.ClusterIP
		}
		if len(s.Spec.LoadBalancerSourceRanges) > 0 {
			out.Spec.LoadBalancerSourceRanges = []string{s.Spec.LoadBalancerSourceRanges[0]}
		}
		for _, p := range s.Spec.Ports {
			out.Spec.Ports = append(out.Spec.Ports, corev1.ServicePort{Protocol: p.Protocol, Port: p.Port})
		}
		out.Status.LoadBalancer = s.Status.LoadBalancer
		return out, nil
	}
}

// stripOurs keeps of an object of this package what plans need.
func stripOurs(o any) (any, error) {
	switch o := o.(type) {
	case *gatewayv1alpha1.TailscaleServices:
		stripMeta(&o.ObjectMeta)
		o.Spec = gatewayv1alpha1.TailscaleServicesSpec{
			Selector:   metav1.LabelSelector{MatchLabels: map[string]string{meta.LabelEndpoints: o.Spec.Selector.MatchLabels[meta.LabelEndpoints]}},
			VIPService: gatewayv1alpha1.VIPServiceTemplate{Name: o.Spec.VIPService.Name, Tags: o.Spec.VIPService.Tags},
		}
		o.Status = gatewayv1alpha1.TailscaleServicesStatus{ConditionedStatus: o.Status.ConditionedStatus, VIPService: o.Status.VIPService}
	case *gatewayv1alpha1.TailscaleEndpoints:
		stripMeta(&o.ObjectMeta)
		accepted := o.Status.GetCondition(meta.TypeTailnetAccepted)
		o.Spec, o.Status = gatewayv1alpha1.TailscaleEndpointsSpec{}, gatewayv1alpha1.TailscaleEndpointsStatus{}
		o.Status.SetConditions(accepted)
	}
	return o, nil
}

// stripMeta keeps of metadata what plans need.
func stripMeta(m *metav1.ObjectMeta) {
	m.ManagedFields, m.Finalizers = nil, nil
	m.Labels = map[string]string{meta.LabelManagedBy: m.Labels[meta.LabelManagedBy]}
	m.Annotations = map[string]string{meta.AnnotationApplied: m.Annotations[meta.AnnotationApplied]}
}
