// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
)

// RetryInterval is the time between two attempts to watch kinds that are not watched yet.
const RetryInterval = 10 * time.Second

// Informers are the source of objects. A cache.Cache implements it.
type Informers interface {
	GetInformer(ctx context.Context, o client.Object, opts ...cache.InformerGetOption) (cache.Informer, error)
}

// Kinds starts the informers of kinds whose CRDs may be installed later. Its methods are safe for
// concurrent use.
type Kinds struct {
	informers Informers
	objects   map[string]client.Object
	log       logging.Logger

	mu sync.Mutex

	// missing are the kinds that are not watched yet, with the reason.
	missing map[string]error
}

// NewKinds returns Kinds with an object of each kind. None is watched until Try is called.
func NewKinds(i Informers, objects map[string]client.Object, log logging.Logger) *Kinds {
	k := &Kinds{informers: i, objects: objects, log: log, missing: make(map[string]error, len(objects))}
	for kind := range objects {
		k.missing[kind] = errors.New("is not watched yet")
	}
	return k
}

// Try calls start with the informer of each kind that is not watched yet. The kind is watched if
// start returns no error. The caller calls Try again after RetryInterval.
func (k *Kinds) Try(ctx context.Context, start func(kind string, i cache.Informer) error) {
	for _, kind := range slices.Sorted(maps.Keys(k.Missing())) {
		err := k.try(ctx, kind, start)
		if err != nil && !meta.IsNoMatchError(err) && ctx.Err() == nil {
			k.log.Info("Cannot watch a kind; retrying", "kind", kind, "error", err)
		}
		k.mu.Lock()
		k.missing[kind] = err
		if err == nil {
			delete(k.missing, kind)
		}
		k.mu.Unlock()
	}
}

func (k *Kinds) try(ctx context.Context, kind string, start func(kind string, i cache.Informer) error) error {
	i, err := k.informers.GetInformer(ctx, k.objects[kind], cache.BlockUntilSynced(false))
	if err != nil {
		return errors.Wrap(err, "cannot get an informer")
	}
	return start(kind, i)
}

// Missing returns the kinds that are not watched yet, with the reason.
func (k *Kinds) Missing() map[string]error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.missing)
}

// Complete reports whether all kinds are watched that the API server knows.
func (k *Kinds) Complete() bool {
	for _, err := range k.Missing() {
		if !meta.IsNoMatchError(err) {
			return false
		}
	}
	return true
}

// Handler returns an event handler that calls changed with the previous and the current state of
// an object. The previous state of a new object is nil, and so is the current state of a deleted
// one.
func Handler(changed func(old, current client.Object)) toolscache.ResourceEventHandler {
	handle := func(old, current any) {
		if t, ok := old.(toolscache.DeletedFinalStateUnknown); ok {
			old = t.Obj
		}
		// Informers of a cache.Cache hold only client.Objects.
		previous, _ := old.(client.Object)
		latest, _ := current.(client.Object)
		if previous != nil || latest != nil {
			changed(previous, latest)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { handle(nil, obj) },
		UpdateFunc: handle,
		DeleteFunc: func(old any) { handle(old, nil) },
	}
}
