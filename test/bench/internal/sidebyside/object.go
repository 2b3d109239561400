// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package sidebyside

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// client returns a client of the lab's API server. Many sets of proxies wait at a time, and programs that ask
// again and again would take the processors that are measured.
func (l *Lab) client() (client.WithWatch, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", l.env["KUBECONFIG"])
	if err != nil {
		return nil, errors.Wrap(err, "cannot read the lab's kubeconfig")
	}
	kube, err := client.NewWithWatch(cfg, client.Options{})
	return kube, errors.Wrap(err, "cannot create a client of the lab")
}

// untilObject watches an object until check returns nil, at most for upLimit.
func (l *Lab) untilObject(ctx context.Context, kube client.WithWatch, gvk schema.GroupVersionKind, key types.NamespacedName, check func(*unstructured.Unstructured) error) error {
	ctx, cancel := context.WithTimeout(ctx, upLimit)
	defer cancel()
	selected := []client.ListOption{client.InNamespace(key.Namespace), client.MatchingFields{"metadata.name": key.Name}}
	list := func(raw metav1.ListOptions) (*unstructured.UnstructuredList, []client.ListOption) {
		l := &unstructured.UnstructuredList{}
		l.SetGroupVersionKind(gvk)
		return l, append([]client.ListOption{&client.ListOptions{Raw: &raw}}, selected...)
	}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
			l, o := list(raw)
			return l, kube.List(ctx, l, o...)
		},
		WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
			l, o := list(raw)
			return kube.Watch(ctx, l, o...)
		},
	}
	missed := errors.New("it does not exist")
	_, err := watchtools.UntilWithSync(ctx, lw, &unstructured.Unstructured{}, nil, func(e watch.Event) (bool, error) {
		u, ok := e.Object.(*unstructured.Unstructured)
		if !ok || e.Type == watch.Deleted {
			missed = errors.New("it does not exist")
			return false, nil
		}
		missed = check(u)
		return missed == nil, nil
	})
	return errors.Wrapf(err, "%s %s: not within %s: %v", gvk.Kind, key, upLimit, missed)
}

// rollPod deletes a pod and waits until another one is ready in its place.
func (l *Lab) rollPod(ctx context.Context, namespace, name string) error {
	kube, err := l.client()
	if err != nil {
		return err
	}
	pod := &corev1.Pod{}
	key := types.NamespacedName{Namespace: namespace, Name: name}
	if err := kube.Get(ctx, key, pod); err != nil {
		return errors.Wrap(err, "cannot get the pod to roll")
	}
	previous := pod.GetUID()
	if err := kube.Delete(ctx, pod); err != nil {
		return errors.Wrap(err, "cannot delete the pod to roll")
	}
	return l.untilObject(ctx, kube, corev1.SchemeGroupVersion.WithKind("Pod"), key, func(u *unstructured.Unstructured) error {
		if u.GetUID() == previous {
			return errors.New("the previous pod exists")
		}
		if s := conditionOf(u, string(corev1.PodReady)); s != "True" {
			return errors.Errorf("the new pod's condition %s is %q", corev1.PodReady, s)
		}
		return nil
	})
}
