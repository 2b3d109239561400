// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package kinds sets up the controller of a managed kind: what the setups of all
// kinds share is here, what a controller does with its kind lives in a package of
// its own beside this one.
package kinds

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/clients"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/common"
)

// An Env is what a controller may use beside its connection.
type Env struct {
	// Kube reads from the cache, but Secrets live.
	Kube client.Client

	// Live reads from the API server. It is for what a write depends on that nothing
	// would correct later.
	Live client.Reader

	// Record events about managed resources.
	Record event.Recorder
}

// A Connect returns the connection that a managed resource asks for. See
// clients.Connector.
type Connect func(ctx context.Context, mg resource.ModernManaged) (*clients.Connection, error)

// A Kind says how the resources of one kind are managed.
type Kind[T resource.ModernManaged] struct {
	GroupVersionKind schema.GroupVersionKind

	// Object is an empty object of the kind.
	Object T

	// List makes an empty list of the kind.
	List func() resource.ManagedList

	// Connect makes a client for one reconcile of one object.
	//
	// A kind that must decide itself what a missing connection means sets Connector
	// instead.
	Connect func(ctx context.Context, env Env, c *clients.Connection, mg T) (managed.TypedExternalClient[T], error)

	// Connector makes what connects objects, in place of Connect and Untouched.
	Connector func(env Env, connect Connect) managed.TypedExternalConnector[T]

	// Untouched reports that nothing can be in the tailnet for an object that is
	// being deleted: it then goes without a connection. The default is that it has
	// no external name and that no create was attempted.
	Untouched func(mg T) bool

	// Left names what may be in the tailnet of an object, for people, or is empty. The
	// default is its external name.
	Left func(mg T) string

	// Poll decides when an object is observed again. The default is the poll
	// interval. Polls are spread either way.
	Poll managed.PollIntervalHook

	// Options of the reconciler. Without an initializer the external name is what
	// the controller or the user sets: it is no copy of the object's name.
	Options []managed.ReconcilerOption

	// Wrap changes how the reconciler is called. It may be nil.
	Wrap func(r reconcile.Reconciler) reconcile.Reconciler

	// Watch adds watches. It may be nil.
	Watch func(b *builder.Builder, env Env) *builder.Builder
}

// Setup adds the controller of a kind to a manager.
func Setup[T resource.ModernManaged](mgr ctrl.Manager, o common.Options, k Kind[T]) error {
	name := k.GroupVersionKind.Kind
	env := Env{Kube: mgr.GetClient(), Live: mgr.GetAPIReader(), Record: cleanRecorder{o.Recorder(mgr, name)}}
	connect := clients.NewConnector(mgr.GetClient(), o.Pool, o.Permits, o.AllowedHosts).Connect
	var c managed.TypedExternalConnector[T] = &connector[T]{kind: k, env: env, connect: connect}
	if k.Connector != nil {
		c = k.Connector(env, connect)
	}
	var r reconcile.Reconciler = o.Reconciler(mgr, k.GroupVersionKind, append([]managed.ReconcilerOption{
		managed.WithTypedExternalConnector[T](&permitted[T]{
			TypedExternalConnector: &refusing[T]{TypedExternalConnector: &cleaning[T]{TypedExternalConnector: c}, refusals: newRefusals(o.PassiveClock())},
			permits:                o.Permits,
			record:                 env.Record,
			left:                   k.left,
		}),
		managed.WithInitializers(),
		// Every kind finds again what a crashed or unanswered Create made.
		managed.WithDeterministicExternalName(true),
		// Lists know of a write at once. Else an object that is deleted soon after it
		// was made would stay for the rest of the grace period.
		managed.WithCreationGracePeriod(0),
		managed.WithPollIntervalHook(common.Jitter(k.poll())),
	}, k.Options...)...)
	if k.Wrap != nil {
		r = k.Wrap(r)
	}
	if err := o.RecordState(mgr, k.List()); err != nil {
		return err
	}
	if err := prune(mgr, o, name, k.List); err != nil {
		return err
	}
	b := ctrl.NewControllerManagedBy(mgr).
		Named(managed.ControllerName(k.GroupVersionKind.GroupKind().String())).
		WithOptions(o.ForControllerRuntime()).
		For(k.Object, builder.WithPredicates(resource.DesiredStateChanged()))
	b = clients.WatchMended(b, env.Kube, k.List)
	if k.Watch != nil {
		b = k.Watch(b, env)
	}
	return errors.Wrapf(b.Complete(o.Limit(name, r)), "cannot set up the controller of kind %s", name)
}

func (k Kind[T]) left(mg T) string {
	if k.Left != nil {
		return k.Left(mg)
	}
	return xpmeta.GetExternalName(mg)
}

func (k Kind[T]) poll() managed.PollIntervalHook {
	if k.Poll != nil {
		return k.Poll
	}
	return managed.PollIntervalHook(samePoll)
}

type connector[T resource.ModernManaged] struct {
	kind    Kind[T]
	env     Env
	connect Connect
}

// Connect to the tailnet, unless there is nothing there to clean up.
func (c *connector[T]) Connect(ctx context.Context, mg T) (managed.TypedExternalClient[T], error) {
	if xpmeta.WasDeleted(mg) && c.untouched(mg) {
		return gone[T]{}, nil
	}
	conn, err := c.connect(ctx, mg)
	if err != nil {
		return nil, err
	}
	return c.kind.Connect(ctx, c.env, conn, mg)
}

func (c *connector[T]) untouched(mg T) bool {
	if c.kind.Untouched != nil {
		return c.kind.Untouched(mg)
	}
	return xpmeta.GetExternalName(mg) == "" && xpmeta.GetExternalCreatePending(mg).IsZero()
}
