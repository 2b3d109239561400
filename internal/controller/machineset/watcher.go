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

// A watcher watches what MachineSets own beside Machines, as soon as the provider
// may. A watch that is there from the start and not allowed would end the whole
// provider, whose other controllers have no need of it.
type watcher struct {
	mgr        ctrl.Manager
	controller controller.Controller

	// namespaces that the manager's cache holds; none means all.
	namespaces []string

	// mu guards watching.
	mu       sync.Mutex
	watching bool
}

// watch from now on. It returns false while that is not allowed.
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
	// Nobody here reads what a PodDisruptionBudget's status says.
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
