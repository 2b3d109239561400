// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package firsttailnet creates the TailscaleTailnet that the values of the chart request. Helm cannot:
// the kind comes with a package that Crossplane installs after the release. The provider creates it
// once, and records that in the request, so that the user may edit or delete the object: nothing writes it
// again.
package firsttailnet

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	kmeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"

	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/access"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/setup"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/redact"
)

const (
	name = "first-tailnet"

	// repeat is the interval at which a refused request is tried again: another version of the kind
	// may accept it. Kubernetes keeps events for an hour.
	repeat = 30 * time.Minute
)

// Reasons of events on the request.
const (
	// reasonCreated means that the provider has created the TailscaleTailnet.
	reasonCreated event.Reason = "CreatedTailscaleTailnet"

	// reasonExists means that a TailscaleTailnet of the name existed, which stays as it is.
	reasonExists event.Reason = "TailscaleTailnetExists"

	// reasonInvalid means that the values of the chart describe no valid TailscaleTailnet.
	reasonInvalid event.Reason = "InvalidTailscaleTailnet"

	// reasonCannotCreate means that the provider will try again.
	reasonCannotCreate event.Reason = "CannotCreateTailscaleTailnet"
)

// Cached returns what a cache holds of ConfigMaps: the request in the provider's namespace.
func Cached(namespace string) cache.ByObject {
	return cache.ByObject{
		Namespaces: map[string]cache.Config{namespace: {}},
		Field:      fields.OneTermEqualSelector(metav1.ObjectNameField, meta.FirstTailnetConfigMap),
	}
}

// Setup adds the controller to a manager, if the provider may watch ConfigMaps in its namespace:
// Crossplane grants it, and the provider works without.
func Setup(mgr ctrl.Manager, o setup.Options) error {
	ok, err := access.Allowed(context.Background(), mgr.GetClient(), o.Namespace, corev1.Resource("configmaps"), "get", "list", "watch", "patch")
	if err != nil {
		return err
	}
	if !ok {
		o.Logger.Info("Not allowed to watch ConfigMaps, so the chart's value tailnet.name has no effect", "namespace", o.Namespace)
		return nil
	}
	r := &reconciler{kube: mgr.GetClient(), live: mgr.GetAPIReader(), record: o.Recorder(mgr, name)}
	request := types.NamespacedName{Namespace: o.Namespace, Name: meta.FirstTailnetConfigMap}
	isRequest := predicate.NewPredicateFuncs(func(o client.Object) bool { return client.ObjectKeyFromObject(o) == request })
	return errors.Wrap(ctrl.NewControllerManagedBy(mgr).
		Named(name).
		WithOptions(o.ForControllerRuntime()).
		For(&corev1.ConfigMap{}, builder.WithPredicates(isRequest)).
		Complete(o.Limit(name, r)), "cannot set up the controller of the first tailnet")
}

type reconciler struct {
	kube   client.Writer
	live   client.Reader
	record event.Recorder
}

// Reconcile creates the requested TailscaleTailnet, unless the provider has recorded that it did, or
// one of that name exists.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	f, err := r.observe(ctx, req.NamespacedName)
	if err != nil {
		return reconcile.Result{}, r.retry(f, err)
	}
	p, err := decide(f)
	if err != nil {
		return r.refuse(f, err), nil
	}
	created, err := r.create(ctx, p.create)
	switch {
	case kerrors.IsInvalid(err), kerrors.IsBadRequest(err):
		return r.refuse(f, err), nil
	case err != nil:
		return reconcile.Result{}, r.retry(f, err)
	case p.record == "":
		return reconcile.Result{}, nil
	}
	if err := r.remember(ctx, f.request, p.record); err != nil {
		return reconcile.Result{}, r.retry(f, err)
	}
	if created {
		r.record.Event(f.request, event.Normal(reasonCreated, fmt.Sprintf("Created TailscaleTailnet %q: edit it directly, because the values below tailnet of the chart have no further effect", p.record)))
		return reconcile.Result{}, nil
	}
	r.record.Event(f.request, event.Normal(reasonExists, fmt.Sprintf("TailscaleTailnet %q exists and stays as it is: the values below tailnet of the chart have no effect on it", p.record)))
	return reconcile.Result{}, nil
}

// observe returns the facts. It reads the API server: with the request of a cache that lacks the record,
// the provider would create again what the user has deleted.
func (r *reconciler) observe(ctx context.Context, key types.NamespacedName) (facts, error) {
	f := facts{request: &corev1.ConfigMap{}}
	if err := r.live.Get(ctx, key, f.request); err != nil {
		return facts{}, errors.Wrapf(client.IgnoreNotFound(err), "cannot get ConfigMap %q", key.Name)
	}
	tailnet := pending(f.request)
	if tailnet == "" {
		return f, nil
	}
	err := r.live.Get(ctx, types.NamespacedName{Name: tailnet}, setup.Metadata(kind()))
	f.exists = err == nil
	return f, errors.Wrapf(client.IgnoreNotFound(err), "cannot get TailscaleTailnet %q", tailnet)
}

// create creates an object, and reports whether it did. One that exists stays as it is.
func (r *reconciler) create(ctx context.Context, o *unstructured.Unstructured) (bool, error) {
	if o == nil {
		return false, nil
	}
	// Without strict validation, the API server drops a misspelt field.
	err := r.kube.Create(ctx, o, client.FieldValidation(metav1.FieldValidationStrict))
	if kerrors.IsAlreadyExists(err) {
		return false, nil
	}
	return err == nil, errors.Wrapf(err, "cannot create TailscaleTailnet %q", o.GetName())
}

// remember records the name of a TailscaleTailnet in the request. A request that is gone needs no
// record.
func (r *reconciler) remember(ctx context.Context, request *corev1.ConfigMap, tailnet string) error {
	patch := client.MergeFrom(request.DeepCopy())
	request.Data[meta.FirstTailnetCreated] = tailnet
	return errors.Wrapf(client.IgnoreNotFound(r.kube.Patch(ctx, request, patch)), "cannot record TailscaleTailnet %q", tailnet)
}

// refuse records an event about a request that describes no valid object.
func (r *reconciler) refuse(f facts, err error) reconcile.Result {
	r.record.Event(f.request, event.Warning(reasonInvalid, clean(err, "correct the values below tailnet of the chart, and repeat helm upgrade")))
	return reconcile.Result{RequeueAfter: repeat}
}

// retry returns an error that the controller's queue retries, and records an event that says what to do.
func (r *reconciler) retry(f facts, err error) error {
	hint := "the provider tries again"
	switch {
	case kmeta.IsNoMatchError(err):
		hint = "the Configuration with the kind is not installed: see kubectl get configurations.pkg.crossplane.io; the provider tries again"
	case kerrors.IsForbidden(err):
		hint = "repeat helm upgrade, which permits it by the ClusterRole tailscale-gateway:first-tailnet, or create the object yourself; the provider tries again"
	}
	out := clean(err, hint)
	if f.request != nil {
		r.record.Event(f.request, event.Warning(reasonCannotCreate, out))
	}
	return out
}

// clean returns an error with a hint and without keys, which a user may have written into any field.
func clean(err error, hint string) error {
	return errors.Errorf("%s; %s", redact.Keys(err.Error()), hint)
}
