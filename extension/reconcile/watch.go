// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/extension/watch"
)

// retryInterval is the time between two attempts to watch a kind that does not exist yet.
const retryInterval = 10 * time.Second

// Watch observes the objects of o's kind until ctx ends. It returns once it has observed the
// existing objects, or when ctx ends. The state function returns an empty string for objects
// that the Reconciler does not manage. Watch finds a kind whose CRD is installed later within
// 10 seconds.
func (r *Reconciler) Watch(ctx context.Context, from watch.Informers, o client.Object, state func(client.Object) string) error {
	i, err := r.informer(ctx, from, o)
	if err != nil || ctx.Err() != nil {
		return err
	}
	observe := func(in any) {
		if o, ok := in.(client.Object); ok {
			r.Observe(client.ObjectKeyFromObject(o), NewObserved(o, state(o)))
		}
	}
	registration, err := i.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    observe,
		UpdateFunc: func(_, now any) { observe(now) },
		DeleteFunc: func(old any) {
			if t, ok := old.(toolscache.DeletedFinalStateUnknown); ok {
				old = t.Obj
			}
			if o, ok := old.(client.Object); ok {
				r.Observe(client.ObjectKeyFromObject(o), nil)
			}
		},
	})
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
func (r *Reconciler) informer(ctx context.Context, from watch.Informers, o client.Object) (cache.Informer, error) {
	t := time.NewTicker(retryInterval)
	defer t.Stop()
	logged := false
	for {
		i, err := from.GetInformer(ctx, o, cache.BlockUntilSynced(false))
		switch {
		case err == nil:
			return i, nil
		case ctx.Err() != nil:
			return nil, nil
		case !logged && meta.IsNoMatchError(err):
			r.log.Info("The API server does not know the kind yet; install the CRDs of the extension's chart", "error", err)
		case !logged:
			r.log.Info("Cannot watch the kind; retrying", "error", err)
		}
		logged = true
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
