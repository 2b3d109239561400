// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package keep

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

// retryInterval between two attempts to watch a kind that is not there yet.
const retryInterval = 10 * time.Second

// Watch the kept objects, which are of o's kind, until ctx ends, and return when those
// that are there have been seen, or ctx has ended. The state of an object is empty if it
// is none of the kept ones. A kind whose CRD comes later is picked up within 10 seconds.
func (k *Keeper) Watch(ctx context.Context, from watch.Informers, o client.Object, state func(client.Object) string) error {
	i, err := k.informer(ctx, from, o)
	if err != nil || ctx.Err() != nil {
		return err
	}
	saw := func(in any) {
		if o, ok := in.(client.Object); ok {
			k.Saw(client.ObjectKeyFromObject(o), See(o, state(o)))
		}
	}
	r, err := i.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    saw,
		UpdateFunc: func(_, now any) { saw(now) },
		DeleteFunc: func(old any) {
			if t, ok := old.(toolscache.DeletedFinalStateUnknown); ok {
				old = t.Obj
			}
			if o, ok := old.(client.Object); ok {
				k.Saw(client.ObjectKeyFromObject(o), nil)
			}
		},
	})
	if err != nil {
		return errors.Wrap(err, "cannot add an event handler")
	}
	select {
	case <-ctx.Done():
	case <-r.HasSyncedChecker().Done():
	}
	return nil
}

// informer of a kind, as soon as there is one.
func (k *Keeper) informer(ctx context.Context, from watch.Informers, o client.Object) (cache.Informer, error) {
	t := time.NewTicker(retryInterval)
	defer t.Stop()
	told := false
	for {
		i, err := from.GetInformer(ctx, o, cache.BlockUntilSynced(false))
		switch {
		case err == nil:
			return i, nil
		case ctx.Err() != nil:
			return nil, nil
		case !told && meta.IsNoMatchError(err):
			k.log.Info("The API server does not know the kind yet; install the CRDs of the extension's chart", "error", err)
		case !told:
			k.log.Info("Cannot watch the kind, and will try again", "error", err)
		}
		told = true
		select {
		case <-ctx.Done():
			return nil, nil
		case <-t.C:
		}
	}
}

// See an object in a state. It is nil if the state is empty.
func See(o client.Object, state string) *Seen {
	if state == "" {
		return nil
	}
	return &Seen{State: state, Object: o}
}
