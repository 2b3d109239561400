// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package composite reports composite resources that Crossplane does not reconcile. With its flag
// --watch-cache-namespaced, Crossplane never sees those of other namespaces than its own, and
// reports nothing (crossplane/crossplane#7353): an event on the object is the only trace.
package composite

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	"github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/access"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/setup"
)

const (
	// grace is the age at which Crossplane has reconciled an object, unless it is not running.
	grace = 2 * time.Minute

	// repeat is the interval at which an event is repeated. Kubernetes keeps events for an hour.
	repeat = 30 * time.Minute
)

const reasonNotReconciled event.Reason = "NotReconciledByCrossplane"

// finalizers is the end of the finalizers that Crossplane adds before it composes anything:
// composite.apiextensions.crossplane.io to a composite resource, and
// finalizer.apiextensions.crossplane.io to a claim (internal/controller/apiextensions/composite and
// claim of Crossplane 2.4).
const finalizers = ".apiextensions.crossplane.io"

var errNotReconciled = errors.New("Crossplane has not reconciled this object. If Crossplane's pod runs, look for --watch-cache-namespaced among its arguments and remove it: with it, Crossplane never sees objects of other namespaces than its own")

// Kinds returns the kinds of composite resources.
func Kinds() []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	for _, k := range []string{
		v1alpha1.TailscaleTailnetKind, v1alpha1.TailscaleEndpointsKind, v1alpha1.TailscaleServicesKind,
		v1alpha1.TailscaleGatewayKind, v1alpha1.TailscaleProxyGroupKind,
	} {
		out = append(out, v1alpha1.SchemeGroupVersion.WithKind(k))
	}
	return out
}

// Setup adds a controller of a kind of composite resources to a manager, if the provider may watch
// that kind: the chart grants it, and the provider works without.
func Setup(ctx context.Context, mgr ctrl.Manager, o setup.Options, gvk schema.GroupVersionKind) error {
	m, err := mgr.GetRESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return errors.Wrapf(err, "cannot find the resource of kind %s", gvk.Kind)
	}
	ok, err := access.Allowed(ctx, mgr.GetClient(), "", m.Resource.GroupResource(), "list", "watch")
	if err != nil {
		return err
	}
	if !ok {
		o.Logger.Info("Not allowed to watch composite resources, so nothing reports those that Crossplane does not reconcile", "kind", gvk.Kind)
		return nil
	}
	name := "composite/" + strings.ToLower(gvk.Kind)
	r := &reconciler{kube: mgr.GetClient(), kind: gvk, clock: o.PassiveClock(), record: o.Recorder(mgr, gvk.Kind)}
	return errors.Wrapf(ctrl.NewControllerManagedBy(mgr).
		Named(name).
		WithOptions(o.ForControllerRuntime()).
		For(setup.Metadata(gvk), builder.OnlyMetadata, builder.WithPredicates(predicate.NewPredicateFuncs(ignored))).
		Complete(o.Limit(name, r)), "cannot set up the controller of composite %s", gvk.Kind)
}

// ignored reports whether Crossplane has not reconciled an object, and would if it saw it.
func ignored(o client.Object) bool {
	return !meta.WasDeleted(o) && !meta.IsPaused(o) && !slices.ContainsFunc(o.GetFinalizers(), func(f string) bool {
		return strings.HasSuffix(f, finalizers)
	})
}

type reconciler struct {
	kube   client.Reader
	kind   schema.GroupVersionKind
	clock  clock.PassiveClock
	record event.Recorder
}

// Reconcile records an event about an object that Crossplane has not reconciled for a while.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	o := setup.Metadata(r.kind)
	if err := r.kube.Get(ctx, req.NamespacedName, o); err != nil {
		return reconcile.Result{}, errors.Wrap(client.IgnoreNotFound(err), "cannot get object")
	}
	if !ignored(o) {
		return reconcile.Result{}, nil
	}
	if wait := grace - r.clock.Since(o.GetCreationTimestamp().Time); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	r.record.Event(o, event.Warning(reasonNotReconciled, errNotReconciled))
	return reconcile.Result{RequeueAfter: repeat}, nil
}
