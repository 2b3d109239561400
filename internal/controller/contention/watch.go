// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package contention

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// WatchReleased makes a controller reconcile the objects of its kind that lost a part whenever
// another object is deleted or changes its parts.
func WatchReleased(b *builder.Builder, kube client.Reader, object client.Object, list func() resource.ManagedList) *builder.Builder {
	return b.Watches(object, handler.EnqueueRequestsFromMapFunc(conflicting(kube, list)), builder.WithPredicates(releases()))
}

func releases() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration()
		},
	}
}

// conflicting returns a function that finds the objects of a kind that lost a part.
func conflicting(kube client.Reader, list func() resource.ManagedList) handler.MapFunc {
	return func(ctx context.Context, changed client.Object) []reconcile.Request {
		l := list()
		if err := kube.List(ctx, l); err != nil {
			// The list comes from a cache, and each object is retried anyway.
			return nil
		}
		var rs []reconcile.Request
		for _, mg := range l.GetItems() {
			if mg.GetUID() != changed.GetUID() && mg.GetCondition(xpv2.TypeReady).Reason == meta.ReasonConflict {
				rs = append(rs, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: mg.GetNamespace(), Name: mg.GetName()}})
			}
		}
		return rs
	}
}
