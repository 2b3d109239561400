// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/extension/watch"
)

// Watch observes the objects of o's kind until ctx ends. It returns once it has observed the
// existing objects, or when ctx ends. The state function returns an empty string for objects
// that the Reconciler does not manage. Watch finds a kind whose CRD is installed later within
// 10 seconds.
func (r *Reconciler) Watch(ctx context.Context, informers watch.Informers, o client.Object, state func(client.Object) string) error {
	i, err := r.informer(ctx, informers, o)
	if err != nil || ctx.Err() != nil {
		return err
	}
	registration, err := i.AddEventHandler(watch.Handler(func(old, current client.Object) {
		if current == nil {
			r.Observe(client.ObjectKeyFromObject(old), nil)
			return
		}
		r.Observe(client.ObjectKeyFromObject(current), NewObserved(current, state(current)))
	}))
	if err != nil {
		return errors.Wrap(err, "cannot add an event handler")
	}
	select {
	case <-ctx.Done():
	case <-registration.HasSyncedChecker().Done():
	}
	return nil
}

// informer waits for the kind and returns its informer.
func (r *Reconciler) informer(ctx context.Context, informers watch.Informers, o client.Object) (cache.Informer, error) {
	var found cache.Informer
	kinds := watch.NewKinds(informers, map[string]client.Object{r.kind: o}, r.log)
	t := time.NewTicker(watch.RetryInterval)
	defer t.Stop()
	for logged := false; ; logged = true {
		kinds.Try(ctx, func(_ string, i cache.Informer) error {
			found = i
			return nil
		})
		if found != nil || ctx.Err() != nil {
			return found, nil
		}
		if err := kinds.Missing()[r.kind]; !logged && meta.IsNoMatchError(err) {
			r.log.Info("The API server does not know the kind yet; install the CRDs of the extension's chart", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil, nil
		case <-t.C:
		}
	}
}

// NewObserved returns an Observed for an object in a state. It returns nil if the state is
// empty.
func NewObserved(o client.Object, state string) *Observed {
	if state == "" {
		return nil
	}
	return &Observed{State: state, Object: o}
}
