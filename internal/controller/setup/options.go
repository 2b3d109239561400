// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package setup holds what controllers share when they are added to a manager: their options, and
// the reconcilers, event recorders and rate limits that are built from them.
package setup

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpevent "github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/feature"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"github.com/crossplane/crossplane-runtime/v2/pkg/statemetrics"

	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/permits"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// Options are the options of all controllers.
type Options struct {
	controller.Options

	// Pool of clients of Tailscale's API. Never nil.
	Pool *tailscale.Pool

	// Permits record which managed resources were allowed to act. Never nil.
	Permits *permits.Store

	// Images of the proxies' containers.
	Images proxy.Images

	// AllowedHosts are the hosts that ProviderConfigs may name, in addition to those that
	// ClusterProviderConfigs name.
	AllowedHosts tailscale.Hosts

	// WatchNamespaces are the namespaces that the manager's cache holds. None means all.
	WatchNamespaces []string

	// OperatorServices also publishes the Services of Tailscale's operator, which must not be installed.
	OperatorServices bool

	// Namespace of the provider.
	Namespace string

	// LeaderElection reports whether there may be several replicas.
	LeaderElection bool

	// Clock of the controllers; nil means the real one.
	Clock clock.PassiveClock
}

// A controller waits firstRetry before it tries an object again, doubles the wait each time, and
// waits at most lastRetry. Crossplane's first wait is one second (crossplane-runtime
// pkg/ratelimiter), which is too long for cases that are no failures: a conflict with a write of
// Crossplane, or an object of the tailnet that was just made or removed.
const (
	firstRetry = 200 * time.Millisecond
	lastRetry  = time.Minute
)

// ForControllerRuntime returns the options in the form of controller-runtime.
func (o Options) ForControllerRuntime() ctrlcontroller.Options {
	out := o.Options.ForControllerRuntime()
	out.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry)
	return out
}

// Now returns the time of the controllers' clock.
func (o Options) Now() time.Time { return o.PassiveClock().Now() }

// PassiveClock returns the controllers' clock.
func (o Options) PassiveClock() clock.PassiveClock {
	if o.Clock == nil {
		return clock.RealClock{}
	}
	return o.Clock
}

// Recorder returns an event recorder for the controller of a kind.
func (o Options) Recorder(mgr ctrl.Manager, kind string) xpevent.Recorder {
	//nolint:staticcheck // crossplane-runtime takes the recorder of the older events API.
	return xpevent.NewAPIRecorder(mgr.GetEventRecorderFor("managed/"+strings.ToLower(kind)), o.EventFilterFunctions...)
}

// Reconciler returns a reconciler of a managed kind.
func (o Options) Reconciler(mgr ctrl.Manager, gvk schema.GroupVersionKind, more ...managed.ReconcilerOption) *managed.Reconciler {
	ro := []managed.ReconcilerOption{
		managed.WithLogger(o.Logger.WithValues("controller", managed.ControllerName(gvk.GroupKind().String()))),
		managed.WithRecorder(o.Recorder(mgr, gvk.Kind)),
		managed.WithPollInterval(o.PollInterval),
	}
	if o.Features == nil || o.Features.Enabled(feature.EnableBetaManagementPolicies) {
		ro = append(ro, managed.WithManagementPolicies())
	}
	if o.ChangeLogOptions != nil {
		ro = append(ro, managed.WithChangeLogger(o.ChangeLogOptions.ChangeLogger))
	}
	if o.MetricOptions != nil {
		ro = append(ro, managed.WithMetricRecorder(o.MetricOptions.MRMetrics))
	}
	return managed.NewReconciler(mgr, resource.ManagedKind(gvk), append(ro, more...)...)
}

// Limit returns the reconciler with the rate limit that all controllers share.
func (o Options) Limit(kind string, r reconcile.Reconciler) reconcile.Reconciler {
	return ratelimiter.NewReconciler(strings.ToLower(kind), errors.WithSilentRequeueOnConflict(r), o.GlobalRateLimiter)
}

// RecordState adds metrics that count the ready resources of a kind.
func (o Options) RecordState(mgr ctrl.Manager, l resource.ManagedList) error {
	if o.MetricOptions == nil || o.MetricOptions.MRStateMetrics == nil {
		return nil
	}
	rec := statemetrics.NewMRStateRecorder(mgr.GetClient(), o.Logger, o.MetricOptions.MRStateMetrics, l, o.MetricOptions.PollStateMetricInterval)
	return errors.Wrap(mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return rec.Start(ctx) })), "cannot add a recorder of state metrics")
}

// Jitter spreads the polls of resources that were made at the same time.
func Jitter(hook managed.PollIntervalHook) managed.PollIntervalHook {
	return func(mg resource.Managed, interval time.Duration) time.Duration {
		d := hook(mg, interval)
		return d - time.Duration(rand.Float64()*0.1*float64(d)) //nolint:gosec // No need for secure randomness.
	}
}

// Deleted passes the deletions of objects that match. An informer whose watch was interrupted may deliver
// the deletion as an update to another object of the same name.
func Deleted(matches func(client.Object) bool) predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() && matches(e.ObjectOld)
		},
		DeleteFunc:  func(e event.DeleteEvent) bool { return matches(e.Object) },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// Metadata returns an object of a kind of which only the metadata is read.
func Metadata(gvk schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(gvk)
	return o
}

// CachedNamespaces returns the namespaces of a cache that holds some. Nil means all.
func CachedNamespaces(names []string) map[string]cache.Config {
	if len(names) == 0 {
		return nil
	}
	out := make(map[string]cache.Config, len(names))
	for _, n := range names {
		out[n] = cache.Config{}
	}
	return out
}
