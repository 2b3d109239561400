// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"context"
	"maps"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/access"
)

// A watcher watches the objects that MachineSets own, except Machines, as soon as the provider has
// the permission. A watch that starts without the permission would end the whole provider, although
// its other controllers do not need it.
type watcher struct {
	mgr        ctrl.Manager
	controller controller.Controller

	// namespaces are the namespaces that the manager's cache holds. None means all.
	namespaces []string

	// mu protects watching and static.
	mu       sync.Mutex
	watching bool
	static   bool
}

// watch starts the watches. It returns false while the provider lacks the permission.
func (w *watcher) watch(ctx context.Context) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watching {
		return true, nil
	}
	for _, r := range []schema.GroupResource{appsv1.Resource("statefulsets"), policyv1.Resource("poddisruptionbudgets")} {
		allowed, err := w.allowed(ctx, r)
		if err != nil || !allowed {
			return false, err
		}
	}
	// The controller does not read the status of PodDisruptionBudgets.
	for o, ps := range map[client.Object][]predicate.Predicate{
		&appsv1.StatefulSet{}:           nil,
		&policyv1.PodDisruptionBudget{}: {predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{})},
	} {
		owner := handler.EnqueueRequestForOwner(w.mgr.GetScheme(), w.mgr.GetRESTMapper(), &v1alpha1.MachineSet{}, handler.OnlyControllerOwner())
		if err := w.controller.Watch(source.Kind(w.mgr.GetCache(), o, owner, ps...)); err != nil {
			return false, errors.Wrapf(err, "cannot watch %T", o)
		}
	}
	w.watching = true
	return true, nil
}

// watchStatic starts the watches that static endpoints need.
func (w *watcher) watchStatic(ctx context.Context) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.static {
		return true, nil
	}
	allowed, err := w.allowed(ctx, corev1.Resource("services"))
	if err != nil || !allowed {
		return false, err
	}
	// Nodes are in no namespace.
	if allowed, err = access.Allowed(ctx, w.mgr.GetClient(), "", corev1.Resource("nodes"), "list", "watch"); err != nil || !allowed {
		return false, err
	}
	owner := handler.EnqueueRequestForOwner(w.mgr.GetScheme(), w.mgr.GetRESTMapper(), &v1alpha1.MachineSet{}, handler.OnlyControllerOwner())
	if err := w.controller.Watch(source.Kind[client.Object](w.mgr.GetCache(), &corev1.Service{}, owner)); err != nil {
		return false, errors.Wrap(err, "cannot watch Services")
	}
	nodes := handler.EnqueueRequestsFromMapFunc(w.withStaticEndpoints)
	if err := w.controller.Watch(source.Kind[client.Object](w.mgr.GetCache(), &corev1.Node{}, nodes, nodesChange())); err != nil {
		return false, errors.Wrap(err, "cannot watch Nodes")
	}
	w.static = true
	return true, nil
}

// withStaticEndpoints returns the sets that announce addresses of nodes.
func (w *watcher) withStaticEndpoints(ctx context.Context, _ client.Object) []reconcile.Request {
	all := &v1alpha1.MachineSetList{}
	if err := w.mgr.GetClient().List(ctx, all); err != nil {
		return nil // The cache has synchronized, so it answers.
	}
	var out []reconcile.Request
	for i := range all.Items {
		if p := all.Items[i].Spec.Pods; p != nil && p.StaticEndpoints != nil {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])})
		}
	}
	return out
}

// nodesChange selects events of Nodes that can change static endpoints. A node updates its status
// every few minutes.
func nodesChange() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		a, okA := e.ObjectOld.(*corev1.Node)
		b, okB := e.ObjectNew.(*corev1.Node)
		return !okA || !okB || nodeReady(a) != nodeReady(b) || !slices.Equal(a.Status.Addresses, b.Status.Addresses) ||
			!maps.Equal(a.GetLabels(), b.GetLabels()) || (a.GetDeletionTimestamp() == nil) != (b.GetDeletionTimestamp() == nil)
	}}
}

func (w *watcher) allowed(ctx context.Context, r schema.GroupResource) (bool, error) {
	namespaces := w.namespaces
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	for _, n := range namespaces {
		allowed, err := access.Allowed(ctx, w.mgr.GetClient(), n, r, "list", "watch")
		if err != nil || !allowed {
			return false, err
		}
	}
	return true, nil
}
