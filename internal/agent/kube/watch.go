// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// WatchSecret calls fn with the named Secret, or with nil if it does not exist: once this is
// known, and after each change, until ctx is done. While the API server is unavailable, fn is
// not called.
func WatchSecret(ctx context.Context, c Client, key types.NamespacedName, fn func(*corev1.Secret)) {
	watchNamed(ctx, c, Secrets, key, fn)
}

// WatchConfigMap does the same for a ConfigMap as WatchSecret does for a Secret.
func WatchConfigMap(ctx context.Context, c Client, key types.NamespacedName, fn func(*corev1.ConfigMap)) {
	watchNamed(ctx, c, ConfigMaps, key, fn)
}

// watchNamed watches one object by name: with resourceNames, RBAC allows list and watch with this field
// selector only.
func watchNamed[T any, O interface {
	*T
	runtime.Object
	metav1.Object
}](ctx context.Context, c Client, r Resource, key types.NamespacedName, fn func(O)) {
	w := listWatch{client: c, resource: r, namespace: key.Namespace, fields: fields.OneTermEqualSelector(metav1.ObjectNameField, key.Name).String()}
	follow(ctx, w, O(new(T)), func(objs []any) {
		for _, o := range objs {
			if obj, ok := o.(O); ok && obj.GetName() == key.Name {
				fn(obj)
				return
			}
		}
		fn(nil)
	})
}

// WatchAttachments calls fn with all ServiceAttachments of an endpoints object, sorted by name:
// once they are known, and after each change, until ctx is done. While the API server is
// unavailable, fn is not called.
func WatchAttachments(ctx context.Context, c Client, namespace, endpoints string, fn func([]v1alpha1.ServiceAttachment)) {
	w := listWatch{client: c, resource: ServiceAttachments, namespace: namespace, labels: labels.SelectorFromSet(labels.Set{meta.LabelEndpoints: endpoints}).String()}
	follow(ctx, w, &v1alpha1.ServiceAttachment{}, func(objs []any) {
		out := make([]v1alpha1.ServiceAttachment, 0, len(objs))
		for _, o := range objs {
			if a, ok := o.(*v1alpha1.ServiceAttachment); ok && a.Labels[meta.LabelEndpoints] == endpoints {
				out = append(out, *a)
			}
		}
		slices.SortFunc(out, func(a, b v1alpha1.ServiceAttachment) int { return cmp.Compare(a.Name, b.Name) })
		fn(out)
	})
}

// follow calls fn with all objects that w selects, from one goroutine. Changes that arrive while fn runs
// are combined into one call.
func follow(ctx context.Context, w listWatch, obj runtime.Object, fn func([]any)) {
	changed := make(chan struct{}, 1)
	notify := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: w.listerWatcher(),
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

// A listWatch lists and watches the objects of a namespace that its selectors select.
type listWatch struct {
	client    Client
	resource  Resource
	namespace string

	// fields and labels are selectors. Empty ones select all objects.
	fields, labels string
}

// listerWatcher returns what an informer needs.
func (w listWatch) listerWatcher() cache.ListerWatcher {
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector, o.LabelSelector = w.fields, w.labels
			return w.client.List(ctx, w.resource, w.namespace, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector, o.LabelSelector = w.fields, w.labels
			return w.client.Watch(ctx, w.resource, w.namespace, o)
		},
	}
	return cache.ToListWatcherWithWatchListSemantics(lw, w.client)
}
