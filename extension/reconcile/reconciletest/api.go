// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package reconciletest provides an API server in memory for tests of package reconcile. The
// API server notifies informers of every write.
package reconciletest

import (
	"context"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// An API holds objects of one kind, and notifies informers of it.
type API struct {
	client.Client

	kind     client.Object
	informer *controllertest.FakeInformer
	writes   atomic.Int64
}

// New returns an API with objects of a kind. The argument kind is an empty object of that kind.
func New(t *testing.T, kind client.Object, objects ...client.Object) *API {
	t.Helper()
	s, err := parse.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	a := &API{kind: kind, informer: controllertest.NewFakeInformer()}
	a.Client = fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return a.written(ctx, o, c.Create(ctx, o, opts...))
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			named, ok := o.(interface {
				GetName() string
				GetNamespace() string
			})
			if !ok {
				return errors.Errorf("cannot get the name of a %T", o)
			}
			key := a.empty()
			key.SetName(named.GetName())
			key.SetNamespace(named.GetNamespace())
			return a.written(ctx, key, c.Apply(ctx, o, opts...))
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return a.written(ctx, o, c.Delete(ctx, o, opts...))
		},
	}).Build()
	a.informer.Synced()
	return a
}

// GetInformer implements watch.Informers. The informer reports existing objects as new.
func (a *API) GetInformer(_ context.Context, _ client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	return informer{a.informer}, nil
}

// Writes returns the number of writes so far.
func (a *API) Writes() int64 { return a.writes.Load() }

// Notify notifies informers of the current version of an object.
func (a *API) Notify(ctx context.Context, key client.ObjectKey) error {
	o := a.empty()
	err := a.Get(ctx, key, o)
	switch {
	case err == nil:
		a.informer.Update(o, o)
	case apierrors.IsNotFound(err):
		o.SetName(key.Name)
		o.SetNamespace(key.Namespace)
		a.informer.Delete(o)
	}
	return client.IgnoreNotFound(err)
}

// written counts a successful write and notifies informers.
func (a *API) written(ctx context.Context, o client.Object, err error) error {
	if err != nil {
		return err
	}
	a.writes.Add(1)
	return a.Notify(ctx, client.ObjectKeyFromObject(o))
}

func (a *API) empty() client.Object {
	o, ok := a.kind.DeepCopyObject().(client.Object)
	if !ok {
		panic("the copy of an object is not an object")
	}
	return o
}

// An informer is a FakeInformer that never reports that it is stopped.
type informer struct{ *controllertest.FakeInformer }

// IsStopped implements cache.Informer.
func (informer) IsStopped() bool { return false }
