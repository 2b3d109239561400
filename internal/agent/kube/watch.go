// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// fieldName is the field selector for which RBAC with resourceNames allows list and watch.
const fieldName = "metadata.name"

// WatchSecret calls fn with the named Secret, or with nil if it does not exist: once this is
// known, and after each change, until ctx is done. While the API server is unavailable, fn is
// not called.
func WatchSecret(ctx context.Context, c client.WithWatch, key client.ObjectKey, fn func(*corev1.Secret)) {
	watchNamed(ctx, c, key, func() client.ObjectList { return &corev1.SecretList{} }, fn)
}

// WatchConfigMap does the same for a ConfigMap as WatchSecret does for a Secret.
func WatchConfigMap(ctx context.Context, c client.WithWatch, key client.ObjectKey, fn func(*corev1.ConfigMap)) {
	watchNamed(ctx, c, key, func() client.ObjectList { return &corev1.ConfigMapList{} }, fn)
}

// watchNamed watches one object by name.
func watchNamed[T any, O interface {
	*T
	client.Object
}](ctx context.Context, c client.WithWatch, key client.ObjectKey, list func() client.ObjectList, fn func(O)) {
	follow(ctx, c, O(new(T)), list,
		func(objs []any) {
			for _, o := range objs {
				if obj, ok := o.(O); ok && obj.GetName() == key.Name {
					fn(obj)
					return
				}
			}
			fn(nil)
		},
		client.InNamespace(key.Namespace), client.MatchingFields{fieldName: key.Name})
}

// WatchAttachments calls fn with all ServiceAttachments of an endpoints object, sorted by name:
// once they are known, and after each change, until ctx is done. While the API server is
// unavailable, fn is not called.
func WatchAttachments(ctx context.Context, c client.WithWatch, namespace, endpoints string, fn func([]v1alpha1.ServiceAttachment)) {
	follow(ctx, c, &v1alpha1.ServiceAttachment{}, func() client.ObjectList { return &v1alpha1.ServiceAttachmentList{} },
		func(objs []any) {
			out := make([]v1alpha1.ServiceAttachment, 0, len(objs))
			for _, o := range objs {
				if a, ok := o.(*v1alpha1.ServiceAttachment); ok && a.Labels[meta.LabelEndpoints] == endpoints {
					out = append(out, *a)
				}
			}
			slices.SortFunc(out, func(a, b v1alpha1.ServiceAttachment) int { return cmp.Compare(a.Name, b.Name) })
			fn(out)
		},
		client.InNamespace(namespace), client.MatchingLabels{meta.LabelEndpoints: endpoints})
}

// follow calls fn with all objects that the options select, from one goroutine. Changes that
// arrive while fn runs are combined into one call.
func follow(ctx context.Context, c client.WithWatch, obj client.Object, list func() client.ObjectList, fn func([]any), o ...client.ListOption) {
	changed := make(chan struct{}, 1)
	notify := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: listWatch(c, list, o...),
		ObjectType:    obj,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { notify() },
			UpdateFunc: func(any, any) { notify() },
			DeleteFunc: func(any) { notify() },
		},
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		informer.RunWithContext(ctx)
	}()
	defer func() { <-done }()

	select {
	case <-ctx.Done():
		return
	case <-informer.HasSyncedChecker().Done():
	}
	// An empty list causes no event.
	notify()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			fn(store.List())
		}
	}
}

func listWatch(c client.WithWatch, list func() client.ObjectList, o ...client.ListOption) cache.ListerWatcher {
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			l := list()
			err := c.List(ctx, l, append(slices.Clone(o), &client.ListOptions{Raw: &opts})...)
			return l, err
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			return c.Watch(ctx, list(), append(slices.Clone(o), &client.ListOptions{Raw: &opts})...)
		},
	}
	return cache.ToListWatcherWithWatchListSemantics(lw, c)
}
