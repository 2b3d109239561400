// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"context"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
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

	// mu protects watching.
	mu       sync.Mutex
	watching bool
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
