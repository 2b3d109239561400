// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package fence holds the controller that fences dead hosts of services with fencing. It assigns the
// hosts to machines that watch them, and withdraws the approval of a host that they have lost. Package internal/fence decides.
//
// The node that takes a host may take the provider's active replica with it, and the other one waits for its
// lease to expire. So this controller runs in each replica, and has a lease that expires within seconds. The
// election begins with the first service that has fencing.
package fence

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/clients"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/setup"
	"github.com/tailscale-gateway/tailscale-gateway/internal/leader"
	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
)

const (
	name = "fence"

	// lease is the name of the lease.
	lease = products.Provider + "-fence"

	// installed is how often the provider asks whether the kinds are installed.
	installed = 10 * time.Second
)

// timing keeps the lease such that another replica has it four seconds after the holder failed.
func timing() leader.Timing {
	return leader.Timing{Lease: 3 * time.Second, Renew: 2 * time.Second, Try: time.Second}
}

// Setup adds the controller to a manager, in each replica, once the kinds are installed. The gate of the other
// controllers opens in the active replica only.
func Setup(mgr ctrl.Manager, o setup.Options) error {
	kinds := []schema.GroupVersionKind{v1alpha1.VIPServiceGroupVersionKind, v1alpha1.MachineGroupVersionKind}
	return errors.Wrap(mgr.Add(everywhere(func(ctx context.Context) error {
		err := wait.PollUntilContextCancel(ctx, installed, true, func(context.Context) (bool, error) {
			for _, k := range kinds {
				if _, err := mgr.GetRESTMapper().RESTMapping(k.GroupKind(), k.Version); err != nil {
					if !meta.IsNoMatchError(err) {
						o.Logger.Debug("Cannot learn whether a kind is installed", "kind", k.String(), "error", err)
					}
					return false, nil
				}
			}
			return true, nil
		})
		if err != nil {
			return nil //nolint:nilerr // The manager stops.
		}
		return add(mgr, o)
	})), "cannot wait for the kinds of fences")
}

// An everywhere is a task of each replica.
type everywhere func(context.Context) error

// Start runs the task.
func (f everywhere) Start(ctx context.Context) error { return f(ctx) }

// NeedLeaderElection returns false.
func (everywhere) NeedLeaderElection() bool { return false }

var _ manager.LeaderElectionRunnable = everywhere(nil)

// add adds the controller to a manager.
func add(mgr ctrl.Manager, o setup.Options) error {
	connector := clients.NewConnector(mgr.GetClient(), o.Pool, o.Permits, o.AllowedHosts)
	e := &election{log: o.Logger.WithValues("controller", name), elected: make(chan event.GenericEvent), begin: make(chan struct{})}
	if o.LeaderElection {
		l, err := leader.New(mgr.GetConfig(), o.Namespace, lease, timing(), []leader.Duty{e.lead})
		if err != nil {
			return err
		}
		e.run = l.Run
	}
	if err := mgr.Add(everywhere(e.Start)); err != nil {
		return errors.Wrap(err, "cannot add the election of the replica that fences")
	}
	r := &reconciler{
		kube: mgr.GetClient(),
		connect: func(ctx context.Context, v *v1alpha1.VIPService) (connection, error) {
			c, err := connector.Connect(ctx, v)
			if err != nil {
				return connection{}, err
			}
			return connection{api: c.Client.Services(), cluster: c.ClusterID}, nil
		},
		cluster:  func(ctx context.Context, v *v1alpha1.VIPService) (string, error) { return connector.ClusterID(ctx, v) },
		election: e, record: o.Recorder(mgr, v1alpha1.VIPServiceKind), clock: o.Now, written: cache.NewExpiring(), stated: cache.NewExpiring(),
	}
	options := o.ForControllerRuntime()
	options.NeedLeaderElection = ptr.To(false)
	return errors.Wrap(ctrl.NewControllerManagedBy(mgr).
		Named(name).
		WithOptions(options).
		For(&v1alpha1.VIPService{}, builder.WithPredicates(changed())).
		Watches(&v1alpha1.Machine{}, handler.EnqueueRequestsFromMapFunc(servicesOf(mgr.GetClient())), builder.WithPredicates(watching())).
		WatchesRawSource(source.Channel(e.elected, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
			return fencing(ctx, mgr.GetClient())
		}))).
		Complete(o.Limit(name, r)), "cannot set up the controller of fences")
}

// changed returns a predicate that passes services with fencing whose hosts, clusters or settings have changed.
func changed() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return concerns(e.Object) },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			o, ok := e.ObjectOld.(*v1alpha1.VIPService)
			n, ok2 := e.ObjectNew.(*v1alpha1.VIPService)
			if !ok || !ok2 || !concerns(n) {
				return false
			}
			previous, current := o.Status.AtProvider, n.Status.AtProvider
			return o.GetGeneration() != n.GetGeneration() || o.GetDeletionTimestamp().IsZero() != n.GetDeletionTimestamp().IsZero() ||
				!equality.Semantic.DeepEqual(previous.Hosts, current.Hosts) || !equality.Semantic.DeepEqual(previous.Consumers, current.Consumers) ||
				!equality.Semantic.DeepEqual(previous.Fence, current.Fence)
		},
	}
}

// concerns reports whether a service has fencing, or had.
func concerns(o client.Object) bool {
	v, ok := o.(*v1alpha1.VIPService)
	return ok && (v.Spec.ForProvider.Fencing || began(v))
}

// watching returns a predicate that passes machines that come or go, and those that report something else about
// the hosts that they watch.
func watching() predicate.Predicate {
	return predicate.Funcs{
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			o, ok := e.ObjectOld.(*v1alpha1.Machine)
			n, ok2 := e.ObjectNew.(*v1alpha1.Machine)
			if !ok || !ok2 || o.Status.Agent == nil || n.Status.Agent == nil {
				return ok && ok2 && (o.Status.Agent == nil) != (n.Status.Agent == nil)
			}
			return !equality.Semantic.DeepEqual(o.Status.Agent.Watches, n.Status.Agent.Watches) || o.Status.Agent.NodeName != n.Status.Agent.NodeName ||
				o.Status.Agent.StoppingSince.IsZero() != n.Status.Agent.StoppingSince.IsZero() || !equality.Semantic.DeepEqual(o.GetAnnotations(), n.GetAnnotations())
		},
	}
}

// servicesOf returns the services with fencing of a machine's namespace.
func servicesOf(kube client.Reader) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		return fencing(ctx, kube, client.InNamespace(o.GetNamespace()))
	}
}

// fencing returns the services with fencing.
func fencing(ctx context.Context, kube client.Reader, selection ...client.ListOption) []reconcile.Request {
	l := &v1alpha1.VIPServiceList{}
	if err := kube.List(ctx, l, append(selection, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil // The list comes from a cache, and the next change repeats it.
	}
	var out []reconcile.Request
	for i := range l.Items {
		if v := &l.Items[i]; concerns(v) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(v)})
		}
	}
	return out
}

// An election selects the replica that fences. It begins when a service with fencing asks for it.
type election struct {
	// run takes part in the election. Nil means that there is one replica.
	run func(context.Context) error
	log logging.Logger

	// elected receives an event when this replica is elected.
	elected chan event.GenericEvent

	// begin is closed, once, when the election is to begin.
	begin chan struct{}
	start sync.Once
	lease atomic.Bool
}

// Start runs the election once it has begun, until the context ends.
func (e *election) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-e.begin:
	}
	if e.run == nil {
		e.lead(ctx)
		return nil
	}
	e.log.Info("Contending for the lease of the replica that fences hosts", "lease", lease)
	return e.run(ctx)
}

// lead is the duty of the elected replica.
func (e *election) lead(ctx context.Context) {
	e.lease.Store(true)
	defer e.lease.Store(false)
	select {
	case <-ctx.Done():
	case e.elected <- event.GenericEvent{Object: &v1alpha1.VIPService{}}:
		<-ctx.Done()
	}
}

// leads reports whether this replica is elected. It begins the election.
func (e *election) leads() bool {
	e.start.Do(func() { close(e.begin) })
	return e.lease.Load()
}
