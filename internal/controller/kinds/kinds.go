// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package kinds adds the controllers of managed kinds to a manager. It holds the set-up that all
// kinds share. Each kind has its controller in a package next to this one.
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
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/contention"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/setup"
)

// An Env is what a controller may use in addition to its connection.
type Env struct {
	// Kube reads from the cache, except for Secrets, which it reads from the API server.
	Kube client.Client

	// Live reads from the API server. Use it where a write depends on the answer and nothing would
	// correct the write later.
	Live client.Reader

	// Record records events about managed resources.
	Record event.Recorder
}

// A Connect returns the connection of a managed resource. See clients.Connector.
type Connect func(ctx context.Context, mg resource.ModernManaged) (*clients.Connection, error)

// A Kind describes how the resources of one kind are managed. Every kind recovers by itself from a
// Create that crashed or got no answer, so no kind has a creation grace period.
type Kind[T resource.ModernManaged] struct {
	GroupVersionKind schema.GroupVersionKind

	// Object is an empty object of the kind.
	Object T

	// List returns an empty list of the kind.
	List func() resource.ManagedList

	// Requires are the kinds, in addition to this one, that must be installed before the controller
	// starts. All kinds require provider configs.
	Requires []schema.GroupVersionKind

	// LeavesNothing declares that objects of the kind leave nothing in the tailnet: their deletion
	// needs neither a connection nor credentials.
	LeavesNothing bool

	// Prepare adds indexes and further controllers to the manager. It may be nil.
	Prepare func(mgr ctrl.Manager) error

	// Connect returns a client for one reconcile of one object.
	//
	// A kind that handles a missing connection itself sets Connector instead.
	Connect func(ctx context.Context, env Env, c *clients.Connection, mg T) (managed.TypedExternalClient[T], error)

	// Connector returns the connector of the kind. It replaces Connect and Untouched.
	Connector func(env Env, connect Connect) managed.TypedExternalConnector[T]

	// Untouched reports whether the tailnet cannot have anything of an object that is being
	// deleted: its deletion then needs no connection. By default an object without an external name
	// and without an attempted create is untouched.
	Untouched func(mg T) bool

	// Remaining returns, for messages, the names of the objects of the tailnet that a managed
	// object may leave there. It may return nothing. The default is the external name.
	Remaining func(mg T) string

	// Facts returns what an object has in the tailnet according to its annotations, and, unless it is
	// being deleted, what its spec wants there. See clients.Connector. A kind needs it if annotations
	// that grants do not limit decide what a deletion removes. It may be nil.
	Facts func(mg T) ([]string, error)

	// Records are the annotations in which an object records what it made in its tailnet, other than
	// names that no other tailnet has. They are removed from an object that moves to another tailnet.
	Records []string

	// Joined returns the DNS name of the tailnet of an object whose tailnet the provider has not
	// recorded, as far as the object shows it. See clients.Residence. It may be nil.
	Joined func(ctx context.Context, env Env, mg T) (string, error)

	// Poll returns when an object is observed again. The default is the poll interval. Polls are
	// spread in either case.
	Poll managed.PollIntervalHook

	// ExternalName returns the external name that an object's spec determines. Nil means that
	// the controller or the user sets it. It is never a copy of the object's name.
	ExternalName func(mg T) string

	// Wrap returns the reconciler that the controller uses. It may be nil.
	Wrap func(r reconcile.Reconciler) reconcile.Reconciler

	// Rivals is an empty object of a kind whose objects compete with those of this kind for parts
	// of the tailnet: when one of them is deleted or changed, the losers are reconciled. It may be
	// nil.
	Rivals client.Object

	// Watch adds watches. It may be nil.
	Watch func(b *builder.Builder, env Env) *builder.Builder
}

// Setup adds the controller of the kind to a manager.
func (k Kind[T]) Setup(mgr ctrl.Manager, o setup.Options) error {
	if k.Prepare != nil {
		if err := k.Prepare(mgr); err != nil {
			return err
		}
	}
	name := k.GroupVersionKind.Kind
	env := Env{Kube: mgr.GetClient(), Live: mgr.GetAPIReader(), Record: sanitizingRecorder{o.Recorder(mgr, name)}}
	connect := clients.NewConnector(mgr.GetClient(), o.Pool, o.Permits, o.AllowedHosts).Recording(k.facts()).Residing(k.residence(env)).Connect
	var r reconcile.Reconciler = o.Reconciler(mgr, k.GroupVersionKind,
		managed.WithTypedExternalConnector[T](&permitted[T]{
			TypedExternalConnector: &backingOff[T]{TypedExternalConnector: k.External(env, connect), refusals: newRefusals(o.PassiveClock())},
			permits:                o.Permits,
			record:                 env.Record,
			remaining:              k.remaining,
		}),
		managed.WithInitializers(k.initializers(mgr.GetClient())...),
		// Every kind finds the result of a Create that crashed or got no answer.
		managed.WithDeterministicExternalName(true),
		// Lists include a write at once. With a grace period, an object that is deleted soon after
		// its creation would stay until the period ends.
		managed.WithCreationGracePeriod(0),
		managed.WithPollIntervalHook(setup.Jitter(k.poll())))
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
	b = clients.WatchConnectable(b, env.Kube, k.List)
	if k.Rivals != nil {
		b = contention.WatchReleased(b, env.Kube, k.Rivals, k.List)
	}
	if k.Watch != nil {
		b = k.Watch(b, env)
	}
	return errors.Wrapf(b.Complete(o.Limit(name, r)), "cannot set up the controller of kind %s", name)
}

// External returns the connector of the kind with what it needs from any caller that reconciles an
// object: its clients clean the status, and record how a Create failed.
func (k Kind[T]) External(env Env, connect Connect) managed.TypedExternalConnector[T] {
	var c managed.TypedExternalConnector[T] = &connector[T]{kind: k, env: env, connect: connect}
	if k.Connector != nil {
		c = k.Connector(env, connect)
	}
	return &sanitizing[T]{TypedExternalConnector: &attempting[T]{TypedExternalConnector: c}}
}

// initializers returns an initializer that sets the external name, if the spec determines it.
func (k Kind[T]) initializers(kube client.Client) []managed.Initializer {
	if k.ExternalName == nil {
		return nil
	}
	return []managed.Initializer{managed.InitializerFn(func(ctx context.Context, mg resource.Managed) error {
		o, ok := mg.(T)
		if !ok {
			return errors.Errorf("cannot initialize a %T as a %s", mg, k.GroupVersionKind.Kind)
		}
		want := k.ExternalName(o)
		if xpmeta.GetExternalName(mg) == want {
			return nil
		}
		xpmeta.SetExternalName(mg, want)
		return errors.Wrap(kube.Update(ctx, mg), "cannot set the external name")
	})}
}

func (k Kind[T]) facts() clients.Facts {
	if k.Facts == nil {
		return nil
	}
	return func(mg resource.ModernManaged) ([]string, error) {
		o, ok := mg.(T)
		if !ok {
			return nil, errors.Errorf("cannot read a %T as a %s", mg, k.GroupVersionKind.Kind)
		}
		return k.Facts(o)
	}
}

// residence returns how objects of the kind are bound to their tailnet.
func (k Kind[T]) residence(env Env) clients.Residence {
	out := clients.Residence{Events: env.Record}
	if k.Joined != nil {
		out.Joined = func(ctx context.Context, mg resource.ModernManaged) (string, error) {
			o, ok := mg.(T)
			if !ok {
				return "", errors.Errorf("cannot read a %T as a %s", mg, k.GroupVersionKind.Kind)
			}
			return k.Joined(ctx, env, o)
		}
	}
	out.Forget = func(ctx context.Context, mg resource.ModernManaged) error {
		for _, a := range k.Records {
			if err := Annotate(ctx, env.Kube, mg, a, ""); err != nil {
				return err
			}
		}
		return nil
	}
	return out
}

func (k Kind[T]) remaining(mg T) string {
	if k.Remaining != nil {
		return k.Remaining(mg)
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

// Connect connects to the tailnet, unless nothing needs clean-up there.
func (c *connector[T]) Connect(ctx context.Context, mg T) (managed.TypedExternalClient[T], error) {
	if xpmeta.WasDeleted(mg) && c.untouched(mg) {
		return nothingExternal[T]{}, nil
	}
	conn, err := c.connect(ctx, mg)
	if err != nil {
		return nil, err
	}
	return c.kind.Connect(ctx, c.env, conn, mg)
}

func (c *connector[T]) untouched(mg T) bool {
	if c.kind.LeavesNothing {
		return true
	}
	if c.kind.Untouched != nil {
		return c.kind.Untouched(mg)
	}
	return xpmeta.GetExternalName(mg) == "" && xpmeta.GetExternalCreatePending(mg).IsZero()
}
