// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package handover notifies the agents of pods that are being stopped about the services that have
// another host. An agent cannot find out itself: control sends a service's addresses to one host only
// (tailcfg.Node, PrimaryRoutes), which may have withdrawn the service itself seconds ago.
package handover

import (
	"context"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/setup"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

const (
	name = "handover"

	// pollInterval is the time between two looks for a host of the services of a stopping machine.
	pollInterval = time.Second

	// forgotten is how long a machine counts as stopping. No grace period is longer, so its pod has not
	// been replaced.
	forgotten = 10 * time.Minute

	// skew is how far the clock of a node may be ahead.
	skew = time.Minute

	// endingFor is how long it counts whether a namespace is being deleted, for all of its machines.
	endingFor = 5 * time.Second
)

// Needs returns the kinds that must be installed before the controller starts.
func Needs() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{v1alpha1.MachineGroupVersionKind, v1alpha1.MachineSetGroupVersionKind, v1alpha1.VIPServiceGroupVersionKind}
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, o setup.Options) error {
	r := &reconciler{kube: mgr.GetClient(), live: mgr.GetAPIReader(), log: o.Logger.WithValues("controller", name), clock: o.Now, endings: cache.NewExpiring()}
	return errors.Wrap(ctrl.NewControllerManagedBy(mgr).
		Named(name).
		WithOptions(o.ForControllerRuntime()).
		For(&v1alpha1.Machine{}, builder.WithPredicates(stopping())).
		Complete(o.Limit(name, r)), "cannot set up the controller of handovers")
}

// stopping returns a predicate that passes machines that begin to stop.
func stopping() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return since(e.Object) != nil },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return since(e.ObjectNew) != nil && !since(e.ObjectNew).Equal(since(e.ObjectOld))
		},
	}
}

// since returns since when a machine is being stopped, or nil.
func since(o client.Object) *metav1.Time {
	m, ok := o.(*v1alpha1.Machine)
	if !ok || m.Status.Agent == nil {
		return nil
	}
	return m.Status.Agent.StoppingSince
}

type reconciler struct {
	kube client.Client

	// live reads from the API server. A cache of namespaces would need the permission to watch them.
	live client.Reader

	log   logging.Logger
	clock func() time.Time

	// endings has which namespaces are being deleted, as they were a moment ago.
	endings *cache.Expiring
}

// Reconcile writes, for a machine that is being stopped, which of its services have another host. It
// looks again until all have, because hosts of other machines and clusters may come at any time.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	m := &v1alpha1.Machine{}
	if err := r.kube.Get(ctx, req.NamespacedName, m); err != nil {
		return reconcile.Result{}, errors.Wrap(client.IgnoreNotFound(err), "cannot get Machine")
	}
	began := since(m)
	if began == nil {
		return reconcile.Result{}, nil
	}
	// The pod writes the time.
	if age := r.clock().Sub(began.Time); age > forgotten || age < -skew {
		return reconcile.Result{}, nil
	}
	w, err := r.world(ctx, m)
	if err != nil {
		return reconcile.Result{}, err
	}
	services, hosted := w.released(m)
	if len(services) < len(m.Status.Agent.Services) {
		if w.ending, err = r.ending(ctx, m.GetNamespace()); err != nil {
			return reconcile.Result{}, err
		}
		services, hosted = w.released(m)
	}
	if err := r.answer(ctx, m, meta.Handover{StopTime: *began, Services: services, Hosted: hosted}); err != nil {
		return reconcile.Result{}, err
	}
	if len(services) == len(m.Status.Agent.Services) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: pollInterval}, nil
}

// ending reports whether a namespace is being deleted. Kubernetes deletes its pods first, and their
// MachineSet only after them. Without the permission to read it, this is not known.
func (r *reconciler) ending(ctx context.Context, name string) (bool, error) {
	if value, ok := r.endings.Get(name); ok {
		return value == true, nil
	}
	ending, err := r.look(ctx, name)
	if err == nil {
		r.endings.Set(name, ending, endingFor)
	}
	return ending, err
}

// look asks the API server whether a namespace is being deleted.
func (r *reconciler) look(ctx context.Context, name string) (bool, error) {
	o := setup.Metadata(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := r.live.Get(ctx, types.NamespacedName{Name: name}, o)
	switch {
	case kerrors.IsForbidden(err):
		return false, nil
	case kerrors.IsNotFound(err):
		return true, nil
	}
	return o.GetDeletionTimestamp() != nil, errors.Wrapf(err, "cannot get namespace %q", name)
}

// world reads what is known about the hosts of the services in a machine's namespace.
func (r *reconciler) world(ctx context.Context, m *v1alpha1.Machine) (world, error) {
	machines, services := &v1alpha1.MachineList{}, &v1alpha1.VIPServiceList{}
	if err := r.kube.List(ctx, machines, client.InNamespace(m.GetNamespace())); err != nil {
		return world{}, errors.Wrap(err, "cannot list Machines")
	}
	if err := r.kube.List(ctx, services, client.InNamespace(m.GetNamespace())); err != nil {
		return world{}, errors.Wrap(err, "cannot list VIPServices")
	}
	out := world{machines: machines.Items, services: services.Items}
	owner := metav1.GetControllerOf(m)
	if owner == nil || owner.Kind != v1alpha1.MachineSetKind {
		return out, nil
	}
	set := &v1alpha1.MachineSet{}
	err := r.kube.Get(ctx, types.NamespacedName{Namespace: m.GetNamespace(), Name: owner.Name}, set)
	switch {
	case kerrors.IsNotFound(err):
		out.orphaned = true
	case err != nil:
		return world{}, errors.Wrapf(err, "cannot get MachineSet %q", owner.Name)
	default:
		out.set, out.orphaned = set, set.GetUID() != owner.UID
	}
	return out, nil
}

// answer writes an answer to the config Secret of a machine, if it differs from the one there.
func (r *reconciler) answer(ctx context.Context, m *v1alpha1.Machine, h meta.Handover) error {
	key := types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName() + meta.ConfigSecretSuffix}
	s := &corev1.Secret{}
	if err := r.kube.Get(ctx, key, s); err != nil {
		return errors.Wrap(client.IgnoreNotFound(err), "cannot get config Secret")
	}
	if !metav1.IsControlledBy(s, m) {
		return errors.Errorf("Secret %q is not the Machine's", key.Name)
	}
	b, err := json.Marshal(h)
	if err != nil {
		return errors.Wrap(err, "cannot encode services")
	}
	if s.GetAnnotations()[meta.AnnotationHandover] == string(b) {
		return nil
	}
	r.log.Debug("Notifying a stopping machine about services that have another host", "machine", client.ObjectKeyFromObject(m), "services", h.Services)
	original := s.DeepCopy()
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, meta.AnnotationHandover, string(b))
	return errors.Wrap(r.kube.Patch(ctx, s, client.MergeFrom(original)), "cannot annotate config Secret")
}
