// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package keeptest is an API server in memory for tests of what is kept: what is
// written to it is told to informers.
package keeptest

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

// An API has objects of one kind, and informers of it.
type API struct {
	client.Client

	kind     client.Object
	informer *controllertest.FakeInformer
	writes   atomic.Int64
}

// New returns an API with objects of the kind of which an empty one is given.
func New(t *testing.T, kind client.Object, objects ...client.Object) *API {
	t.Helper()
	s, err := parse.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	a := &API{kind: kind, informer: controllertest.NewFakeInformer()}
	a.Client = fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return a.wrote(ctx, o, c.Create(ctx, o, opts...))
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			named, ok := o.(interface {
				GetName() string
				GetNamespace() string
			})
			if !ok {
				return errors.Errorf("cannot tell the name of a %T", o)
			}
			key := a.empty()
			key.SetName(named.GetName())
			key.SetNamespace(named.GetNamespace())
			return a.wrote(ctx, key, c.Apply(ctx, o, opts...))
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return a.wrote(ctx, o, c.Delete(ctx, o, opts...))
		},
	}).Build()
	a.informer.Synced()
	return a
}

// GetInformer implements index.Informers. What is there is told as new.
func (a *API) GetInformer(_ context.Context, _ client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	return informer{a.informer}, nil
}

// Writes so far.
func (a *API) Writes() int64 { return a.writes.Load() }

// Tell informers of an object as it is now.
func (a *API) Tell(ctx context.Context, key client.ObjectKey) error {
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

func (a *API) wrote(ctx context.Context, o client.Object, err error) error {
	if err != nil {
		return err
	}
	a.writes.Add(1)
	return a.Tell(ctx, client.ObjectKeyFromObject(o))
}

func (a *API) empty() client.Object {
	o, ok := a.kind.DeepCopyObject().(client.Object)
	if !ok {
		panic("an object's copy is one")
	}
	return o
}

// An informer that can tell that it is not stopped.
type informer struct{ *controllertest.FakeInformer }

// IsStopped implements cache.Informer.
func (informer) IsStopped() bool { return false }
