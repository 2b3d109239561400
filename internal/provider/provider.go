// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"net/http"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	xpcontroller "github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/feature"
	"github.com/crossplane/crossplane-runtime/v2/pkg/gate"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/customresourcesgate"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/statemetrics"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/authorities"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/access"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/permits"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/setup"
	"github.com/tailscale-gateway/tailscale-gateway/internal/logs"
	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
	"github.com/tailscale-gateway/tailscale-gateway/internal/version"
)

// Run runs the provider until the context ends. A process can run only one, because metrics are
// global.
func Run(ctx context.Context, o Options) error {
	if err := o.validate(); err != nil {
		return err
	}
	log := logs.New(logs.Options{Debug: o.Debug, Name: products.Provider, Writer: o.Log, Controllers: true})
	log.Info("Starting", "version", version.Version, "poll-interval", o.Poll.String(), "max-reconcile-rate", o.MaxReconcileRate)

	mgr, err := newManager(o)
	if err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return errors.Wrap(err, "cannot add health check")
	}
	if err := mgr.AddReadyzCheck("cache", func(req *http.Request) error { return synced(req.Context(), mgr.GetCache()) }); err != nil {
		return errors.Wrap(err, "cannot add readiness check")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	co, err := controllerOptions(o, log)
	if err != nil {
		return err
	}
	// The manager's client reads Secrets from the API server.
	co.Permits = permits.New(mgr.GetClient(), o.Namespace)
	if err := mgr.Add(starter{
		log:     log,
		allowed: func(ctx context.Context) (bool, error) { return canWatchConfigs(ctx, mgr) },
		add:     func(ctx context.Context) error { return addControllers(ctx, mgr, co, cancel) },
	}); err != nil {
		return errors.Wrap(err, "cannot add the start of controllers")
	}
	if err := mgr.Start(ctx); err != nil {
		return errors.Wrap(err, "cannot run controllers")
	}
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// synced reports an error until the cache is synced.
func synced(ctx context.Context, c cache.Cache) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if !c.WaitForCacheSync(ctx) {
		return errors.New("caches are not synced yet")
	}
	return nil
}

// addControllers adds the controllers, gated by their CRDs if the provider may watch those. It calls
// fail if a controller cannot be added later, which stops the provider.
func addControllers(ctx context.Context, mgr ctrl.Manager, o setup.Options, fail context.CancelCauseFunc) error {
	gated, err := canWatchCRDs(ctx, mgr)
	if err != nil {
		return err
	}
	if !gated {
		o.Logger.Info("Not allowed to watch CustomResourceDefinitions, starting all controllers at once")
		return controller.Setup(mgr, o)
	}
	o.Gate = new(gate.Gate[schema.GroupVersionKind])
	controller.SetupGated(ctx, mgr, o, fail)
	return errors.Wrap(customresourcesgate.Setup(mgr, o.Options), "cannot set up the gate of CustomResourceDefinitions")
}

func controllerOptions(o Options, log logging.Logger) (setup.Options, error) {
	apiMetrics, mrMetrics, stateMetrics := tailscale.NewMetrics(), managed.NewMRMetricRecorder(), statemetrics.NewMRStateMetrics()
	trusted, err := authorities.Pool(o.CABundle)
	if err != nil {
		return setup.Options{}, err
	}
	pool := tailscale.NewPool(tailscale.Options{Rate: o.APIRate, Burst: o.APIBurst, ListMaxAge: o.ListMaxAge, Metrics: apiMetrics, Authorities: trusted, Clock: o.Clock})
	metrics.Registry.MustRegister(apiMetrics, mrMetrics, stateMetrics, pool)
	co := setup.Options{
		Options: xpcontroller.Options{
			Logger:                  log,
			MaxConcurrentReconciles: o.MaxReconcileRate,
			PollInterval:            o.Poll,
			GlobalRateLimiter:       ratelimiter.NewGlobal(o.MaxReconcileRate),
			Features:                &feature.Flags{},
			MetricOptions: &xpcontroller.MetricOptions{
				PollStateMetricInterval: o.PollStateMetric,
				MRMetrics:               mrMetrics,
				MRStateMetrics:          stateMetrics,
			},
		},
		Pool:            pool,
		Clock:           o.Clock,
		Images:          o.Images,
		WatchNamespaces: o.WatchNamespaces,
		Namespace:       o.Namespace,
		LeaderElection:  o.LeaderElection,
		AllowedHosts:    o.AllowedHosts,

		OperatorServices: o.OperatorServices,
	}
	if o.ManagementPolicies {
		co.Features.Enable(feature.EnableBetaManagementPolicies)
	}
	if !o.ChangeLogs {
		return co, nil
	}
	co.Features.Enable(feature.EnableAlphaChangeLogs)
	logger, err := newChangeLogger(o.ChangeLogsSocket)
	if err != nil {
		return setup.Options{}, err
	}
	co.ChangeLogOptions = &xpcontroller.ChangeLogOptions{ChangeLogger: logger}
	return co, nil
}

// canWatchCRDs reports whether the provider may watch CustomResourceDefinitions: the RBAC
// manager of some versions of Crossplane permits it to safe-start providers, others do not.
func canWatchCRDs(ctx context.Context, mgr ctrl.Manager) (bool, error) {
	return access.Allowed(ctx, mgr.GetClient(), "", apiextensionsv1.Resource("customresourcedefinitions"), "get", "list", "watch")
}

// canWatchConfigs reports whether the provider may watch ClusterProviderConfigs: every installation
// permits that, also one whose provider manages the resources of some namespaces only.
func canWatchConfigs(ctx context.Context, mgr ctrl.Manager) (bool, error) {
	return access.Allowed(ctx, mgr.GetClient(), "", schema.GroupResource{Group: v1alpha1.Group, Resource: "clusterproviderconfigs"}, "list", "watch")
}
