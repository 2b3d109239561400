// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"log"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// retry is the pause after a write that failed.
const retry = time.Second

// Run watches all Services of a cluster and writes their addresses until ctx ends. It logs and
// retries failures.
func Run(ctx context.Context, k kubernetes.Interface, pool netip.Prefix, l *log.Logger) error {
	// One pending event is enough, because each pass reads all Services.
	changed := make(chan struct{}, 1)
	wake := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(k.CoreV1().RESTClient(), "services", metav1.NamespaceAll, fields.Everything()),
		ObjectType:    &corev1.Service{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { wake() },
			UpdateFunc: func(any, any) { wake() },
			DeleteFunc: func(any) { wake() },
		},
	})
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return errors.New("cannot list Services")
	}
	for {
		var timer <-chan time.Time
		if err := assign(ctx, k, pool, services(store)); err != nil {
			l.Print(err)
			timer = time.After(retry)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-timer:
		}
	}
}

func services(store cache.Store) []*corev1.Service {
	var out []*corev1.Service
	for _, o := range store.List() {
		if s, ok := o.(*corev1.Service); ok {
			out = append(out, s)
		}
	}
	return out
}

// assign writes each status that must change. A Service that was changed or deleted in the
// meantime causes another event.
func assign(ctx context.Context, k kubernetes.Interface, pool netip.Prefix, all []*corev1.Service) error {
	var errs []error
	for _, s := range Assign(pool, all) {
		_, err := k.CoreV1().Services(s.Namespace).UpdateStatus(ctx, s, metav1.UpdateOptions{})
		if err != nil && !kerrors.IsConflict(err) && !kerrors.IsNotFound(err) {
			errs = append(errs, errors.Wrapf(err, "cannot set the address of Service %s/%s", s.Namespace, s.Name))
		}
	}
	return errors.Join(errs...)
}
