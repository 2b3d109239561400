// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	kmeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/clients"
	"github.com/tailscale-gateway/tailscale-gateway/internal/multicluster"
)

type reconciler struct {
	kube client.Client

	// live reads from the API server.
	live client.Reader

	// services is a cache of all Services, and of the EndpointSlices of imported ones.
	services client.Reader

	records  *records
	applied  applications
	recorder event.Recorder
	clock    func() time.Time

	// watched are the namespaces that the manager's cache holds. None means all.
	watched []string
}

// An application is an object as this process applied it last: what it sent, and the generation that resulted.
type application struct {
	digest     [sha256.Size]byte
	generation int64
}

// applications are the applications of all namespaces. They may be lost.
type applications struct {
	mu   sync.Mutex
	last map[string]map[string]application
}

func (a *applications) get(namespace, key string) application {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last[namespace][key]
}

func (a *applications) set(namespace, key string, last application) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last == nil {
		a.last = map[string]map[string]application{}
	}
	if a.last[namespace] == nil {
		a.last[namespace] = map[string]application{}
	}
	a.last[namespace][key] = last
}

// forget forgets a namespace.
func (a *applications) forget(namespace string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.last, namespace)
}

// Reconcile brings a namespace's objects to what its ServiceExports and the records of other clusters want.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	f, problem, err := r.observe(ctx, req.Name)
	switch {
	case errors.Is(err, errUnknown):
		return reconcile.Result{RequeueAfter: r.records.nextLook()}, nil
	case err != nil:
		return reconcile.Result{}, err
	case f == nil:
		r.records.wait(req.Name, false)
		r.applied.forget(req.Name)
		return reconcile.Result{}, nil
	case problem != "" && len(f.Exports) == 0 && !r.records.exported(req.Name):
		r.records.wait(req.Name, false)
		return reconcile.Result{}, nil
	case problem != "":
		// A grant may change, of which nothing notifies.
		r.records.wait(req.Name, false)
		return reconcile.Result{RequeueAfter: intervalMax}, r.refuse(ctx, f.Exports, problem)
	}
	p := multicluster.New(*f)
	r.records.wait(req.Name, p.Lags)
	refused, all := r.apply(ctx, *f, p)
	for i := range p.Statuses {
		if s := &p.Statuses[i]; refused[s.Export.GetName()] != "" {
			s.Conditions = multicluster.Refused(s.Export, s.Conditions, refused[s.Export.GetName()])
		}
	}
	return reconcile.Result{}, errors.Join(all, r.report(ctx, p.Statuses), r.reportImports(ctx, *f, p.Imports))
}

// observe returns the facts of a namespace. They are nil if there is nothing to do, and have only the
// ServiceExports if there is a problem.
func (r *reconciler) observe(ctx context.Context, namespace string) (*multicluster.Facts, string, error) {
	if len(r.watched) > 0 && !slices.Contains(r.watched, namespace) {
		return nil, "", nil
	}
	if _, ok := r.records.get(); !ok {
		return nil, "", errUnknown
	}
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := r.live.Get(ctx, types.NamespacedName{Name: namespace}, ns); err != nil {
		// Clusters of a set have different namespaces.
		return nil, "", errors.Wrapf(client.IgnoreNotFound(err), "cannot get namespace %q", namespace)
	}
	if ns.GetDeletionTimestamp() != nil {
		return nil, "", nil
	}
	f := &multicluster.Facts{Namespace: namespace, Services: map[string]*corev1.Service{}, Imports: map[string]*mcsv1beta1.ServiceImport{}, Reached: map[string]*corev1.Service{}, Foreign: map[string][]string{}}
	exports, imports := &mcsv1beta1.ServiceExportList{}, &mcsv1beta1.ServiceImportList{}
	if err := r.kube.List(ctx, exports, client.InNamespace(namespace)); err != nil {
		return nil, "", errors.Wrap(err, "cannot list ServiceExports")
	}
	f.Exports = slices.DeleteFunc(exports.Items, func(e mcsv1beta1.ServiceExport) bool { return e.GetDeletionTimestamp() != nil })
	if err := r.kube.List(ctx, imports, client.InNamespace(namespace)); err != nil {
		return nil, "", errors.Wrap(err, "cannot list ServiceImports")
	}
	for i := range imports.Items {
		f.Imports[imports.Items[i].GetName()] = &imports.Items[i]
	}
	s, problem, err := r.member(ctx, namespace)
	if err != nil || problem != "" {
		return f, problem, err
	}
	f.Membership, f.Records = s.Membership, s.exports[namespace]
	for _, e := range f.Exports {
		service := &corev1.Service{}
		err := r.services.Get(ctx, client.ObjectKeyFromObject(&e), service)
		if err == nil {
			f.Services[e.GetName()] = service
		} else if !kerrors.IsNotFound(err) {
			return nil, "", errors.Wrapf(err, "cannot get Service %q", e.GetName())
		}
	}
	reached := &corev1.ServiceList{}
	if err := r.services.List(ctx, reached, client.InNamespace(namespace), client.HasLabels{mcsv1beta1.LabelServiceName}); err != nil {
		return nil, "", errors.Wrap(err, "cannot list Services")
	}
	for i := range reached.Items {
		if s := &reached.Items[i]; multicluster.Leads(s) {
			f.Reached[s.Labels[mcsv1beta1.LabelServiceName]] = s
		}
	}
	endpointSlices := &discoveryv1.EndpointSliceList{}
	if err := r.services.List(ctx, endpointSlices, client.InNamespace(namespace)); err != nil {
		return nil, "", errors.Wrap(err, "cannot list EndpointSlices")
	}
	f.Slices = endpointSlices.Items
	for _, kind := range []string{gatewayv1alpha1.TailscaleEndpointsKind, gatewayv1alpha1.TailscaleServicesKind} {
		items, err := r.composites(ctx, namespace, kind)
		if err != nil {
			return nil, "", err
		}
		for i := range items {
			if !multicluster.Owns(&items[i]) {
				f.Foreign[kind] = append(f.Foreign[kind], items[i].GetName())
			}
		}
	}
	return f, "", nil
}

// composites returns the metadata of the namespace's objects of a composite kind.
func (r *reconciler) composites(ctx context.Context, namespace, kind string) ([]metav1.PartialObjectMetadata, error) {
	l := &metav1.PartialObjectMetadataList{}
	l.SetGroupVersionKind(gatewayv1alpha1.SchemeGroupVersion.WithKind(kind + "List"))
	if err := r.kube.List(ctx, l, client.InNamespace(namespace)); err != nil {
		return nil, errors.Wrapf(err, "cannot list %s", kind)
	}
	return l.Items, nil
}

// errUnknown says that it is not known what the clusters of a set export.
var errUnknown = errors.New("what other clusters export is not known yet")

// member returns the set to which a namespace belongs, or the problem that it belongs to none or to several.
func (r *reconciler) member(ctx context.Context, namespace string) (*set, string, error) {
	sets, _ := r.records.get()
	var names []string
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		_, err := r.records.connector.Grant(ctx, namespace, xpv2.ProviderConfigReference{Kind: v1alpha1.ClusterProviderConfigKind, Name: name})
		var refused *clients.CredentialsError
		switch {
		case err == nil:
			names = append(names, name)
		case !errors.As(err, &refused):
			return nil, "", err
		}
	}
	switch {
	case len(names) == 0:
		return nil, "This namespace may use no tailnet that names a set of clusters: set clusterSet in a TailscaleTailnet whose allowedNamespaces include the namespace", nil
	case len(names) > 1:
		return nil, fmt.Sprintf("This namespace may use %d TailscaleTailnets that name a clusterSet, such as %q and %q; leave the namespace in the allowedNamespaces of one", len(names), names[0], names[1]), nil
	case sets[names[0]] == nil:
		return nil, "", errUnknown
	}
	return sets[names[0]], "", nil
}

// refuse reports a problem with the ServiceExports of a namespace that have no other status than such a problem.
// Existing objects stay, and so does the status of another implementation of the API.
func (r *reconciler) refuse(ctx context.Context, exports []mcsv1beta1.ServiceExport, problem string) error {
	var statuses []multicluster.ExportStatus
	for i := range exports {
		if c := exports[i].Status.Conditions; len(c) > 1 || len(c) == 1 && c[0].Reason != string(mcsv1beta1.ServiceExportReasonPending) {
			continue
		}
		statuses = append(statuses, multicluster.ExportStatus{Export: &exports[i], Conditions: []metav1.Condition{multicluster.NotReady(&exports[i], problem)}})
	}
	return r.report(ctx, statuses)
}

// report writes the statuses of ServiceExports that have changed.
func (r *reconciler) report(ctx context.Context, statuses []multicluster.ExportStatus) error {
	var all error
	for _, s := range statuses {
		e := s.Export.DeepCopy()
		changed := r.set(&e.Status.Conditions, s.Conditions)
		if len(changed) == 0 {
			continue
		}
		err := r.kube.Status().Update(ctx, e)
		all = errors.Join(all, errors.Wrapf(client.IgnoreNotFound(err), "cannot update the status of ServiceExport %q", e.GetName()))
		if err == nil {
			r.announce(e, changed)
		}
	}
	return all
}

// reportImports writes the statuses of ServiceImports that have changed. Those that have been created now
// have theirs when they are in the cache.
func (r *reconciler) reportImports(ctx context.Context, f multicluster.Facts, imports []*mcsv1beta1.ServiceImport) error {
	var all error
	for _, want := range imports {
		existing := f.Imports[want.GetName()]
		if existing == nil {
			continue
		}
		i := existing.DeepCopy()
		changed := r.set(&i.Status.Conditions, want.Status.Conditions)
		i.Status.Clusters, i.Status.EndpointSliceObjects = want.Status.Clusters, want.Status.EndpointSliceObjects
		if len(changed) == 0 && equality.Semantic.DeepEqual(i.Status, existing.Status) {
			continue
		}
		err := r.kube.Status().Update(ctx, i)
		all = errors.Join(all, errors.Wrapf(client.IgnoreNotFound(err), "cannot update the status of ServiceImport %q", i.GetName()))
	}
	return all
}

// set sets conditions, and returns those that have changed.
func (r *reconciler) set(conditions *[]metav1.Condition, want []metav1.Condition) []metav1.Condition {
	var changed []metav1.Condition
	for _, c := range want {
		c.LastTransitionTime = metav1.NewTime(r.clock())
		if kmeta.SetStatusCondition(conditions, c) {
			changed = append(changed, c)
		}
	}
	return changed
}

// announce records an event for each condition of a ServiceExport that has changed and that a user should see.
func (r *reconciler) announce(e *mcsv1beta1.ServiceExport, changed []metav1.Condition) {
	for _, c := range changed {
		switch reason := event.Reason(c.Reason); {
		case c.Reason == string(mcsv1beta1.ServiceExportReasonExported):
			r.recorder.Event(e, event.Normal(reason, strings.TrimSpace("The clusters of the set can import the Service. "+c.Message)))
		case c.Type == string(mcsv1beta1.ServiceExportConditionValid) && c.Status == metav1.ConditionFalse,
			c.Type == string(mcsv1beta1.ServiceExportConditionConflict) && c.Status == metav1.ConditionTrue:
			r.recorder.Event(e, event.Warning(reason, errors.New(c.Message)))
		}
	}
}

// owner is the field manager of this controller.
const owner = client.FieldOwner("tailscale-gateway-multicluster")

// apply creates, updates and deletes the objects of a namespace. It returns why the API server refuses what
// publishes a Service, by the name of its ServiceExport, and all errors.
func (r *reconciler) apply(ctx context.Context, f multicluster.Facts, p multicluster.Plan) (refused map[string]string, all error) {
	refused = map[string]string{}
	if p.Endpoints != nil {
		err := r.put(ctx, p.Endpoints)
		all = errors.Join(all, err)
		for _, s := range p.Services {
			refused[s.Spec.VIPService.Export.Name] = refusal(err)
		}
	}
	wanted := map[string]bool{}
	for _, s := range p.Services {
		err := r.put(ctx, s)
		all = errors.Join(all, err)
		if text := refusal(err); text != "" {
			refused[s.Spec.VIPService.Export.Name] = text
		}
		wanted[s.GetName()] = true
	}
	imported := map[string]bool{}
	for _, i := range p.Imports {
		imported[i.GetName()] = true
		all = errors.Join(all, r.put(ctx, i))
	}
	for _, name := range slices.Sorted(maps.Keys(f.Imports)) {
		if o := f.Imports[name]; !imported[name] && multicluster.Owns(o) {
			all = errors.Join(all, errors.Wrapf(client.IgnoreNotFound(r.kube.Delete(ctx, o)), "cannot delete ServiceImport %q", name))
		}
	}
	all = errors.Join(all, r.applySlices(ctx, f, p), r.prune(ctx, f.Namespace, gatewayv1alpha1.TailscaleServicesKind, wanted))
	if p.Endpoints == nil {
		all = errors.Join(all, r.prune(ctx, f.Namespace, gatewayv1alpha1.TailscaleEndpointsKind, nil))
	}
	return refused, all
}

// refusal returns the message of an error that another attempt does not repair, or "".
func refusal(err error) string {
	if kerrors.IsInvalid(err) || kerrors.IsForbidden(err) {
		return err.Error()
	}
	return ""
}

// applySlices writes the EndpointSlices of ServiceImports that differ from the wanted ones.
func (r *reconciler) applySlices(ctx context.Context, f multicluster.Facts, p multicluster.Plan) error {
	var all error
	existing := map[string]*discoveryv1.EndpointSlice{}
	for i := range f.Slices {
		if s := &f.Slices[i]; multicluster.Copied(s) {
			existing[s.GetName()] = s
		}
	}
	for _, want := range p.Slices {
		if s := existing[want.GetName()]; s == nil || !multicluster.SameSlice(s, want) {
			all = errors.Join(all, r.put(ctx, want))
		}
		delete(existing, want.GetName())
	}
	for _, name := range slices.Sorted(maps.Keys(existing)) {
		all = errors.Join(all, errors.Wrapf(client.IgnoreNotFound(r.kube.Delete(ctx, existing[name])), "cannot delete EndpointSlice %q", name))
	}
	return all
}

// prune deletes the objects of a kind that this controller has created and that are not wanted any more.
func (r *reconciler) prune(ctx context.Context, namespace, kind string, wanted map[string]bool) error {
	items, err := r.composites(ctx, namespace, kind)
	if err != nil {
		return err
	}
	var all error
	for i := range items {
		if o := &items[i]; multicluster.Owns(o) && !wanted[o.GetName()] && o.GetDeletionTimestamp() == nil {
			o.SetGroupVersionKind(gatewayv1alpha1.SchemeGroupVersion.WithKind(kind))
			all = errors.Join(all, errors.Wrapf(client.IgnoreNotFound(r.kube.Delete(ctx, o)), "cannot delete %s %q", kind, o.GetName()))
		}
	}
	return all
}

// put applies an object, unless that was the last change of it.
func (r *reconciler) put(ctx context.Context, o client.Object) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return errors.Wrapf(err, "cannot convert %T %q", o, o.GetName())
	}
	u := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	text, err := json.Marshal(u.Object)
	if err != nil {
		return errors.Wrapf(err, "cannot encode %s %q", u.GetKind(), o.GetName())
	}
	key := u.GetKind() + "/" + o.GetName()
	last := r.applied.get(o.GetNamespace(), key)
	if generation := r.generation(ctx, o); generation > 0 && last == (application{digest: sha256.Sum256(text), generation: generation}) {
		return nil
	}
	if err := r.kube.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), owner, client.ForceOwnership); err != nil {
		return errors.Wrapf(err, "cannot apply %s %q", u.GetKind(), o.GetName())
	}
	r.applied.set(o.GetNamespace(), key, application{digest: sha256.Sum256(text), generation: u.GetGeneration()})
	return nil
}

// generation returns an object's generation in the cache. It is zero if the object has none, is not known there, or
// lacks labels or annotations, which have no part in it.
func (r *reconciler) generation(ctx context.Context, o client.Object) int64 {
	var existing client.Object
	switch o.(type) {
	case *discoveryv1.EndpointSlice:
		return 0
	case *mcsv1beta1.ServiceImport:
		existing = &mcsv1beta1.ServiceImport{}
	default:
		existing = composite(o.GetObjectKind().GroupVersionKind().Kind)
	}
	if err := r.kube.Get(ctx, client.ObjectKeyFromObject(o), existing); err != nil {
		return 0
	}
	if !has(existing.GetLabels(), o.GetLabels()) || !has(existing.GetAnnotations(), o.GetAnnotations()) {
		return 0
	}
	return existing.GetGeneration()
}

// has reports whether a map has all entries of another.
func has(m, entries map[string]string) bool {
	for k, v := range entries {
		if w, ok := m[k]; !ok || w != v {
			return false
		}
	}
	return true
}
