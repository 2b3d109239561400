// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/http"
	"time"

	"github.com/alecthomas/kong"
	"github.com/go-logr/logr"
	"go.uber.org/zap/zapcore"
	authv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

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
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/common"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
	"github.com/tailscale-gateway/tailscale-gateway/internal/version"
)

// options are the provider's flags.
type options struct {
	Debug            bool             `env:"DEBUG" help:"Log what is done, and not only what an operator must act on." short:"d"`
	LeaderElection   bool             `env:"LEADER_ELECTION" help:"Let only one of several replicas work." short:"l"`
	Poll             time.Duration    `default:"1m" env:"POLL" help:"How often each managed resource is checked for drift."`
	Sync             time.Duration    `default:"1h" env:"SYNC" help:"How often all objects are reconciled, changed or not." short:"s"`
	PollStateMetric  time.Duration    `default:"5s" env:"POLL_STATE_METRIC" help:"How often metrics of resources' state are recorded."`
	MaxReconcileRate int              `default:"100" env:"MAX_RECONCILE_RATE" help:"How many reconciles a second may start, and how many of a kind may run at once."`
	APIRate          float64          `default:"20" env:"API_RATE" help:"Requests a second to Tailscale's API, per provider config."`
	APIBurst         int              `default:"60" env:"API_BURST" help:"Requests to Tailscale's API that may be sent at once, per provider config."`
	ListMaxAge       time.Duration    `default:"30s" env:"LIST_MAX_AGE" help:"How old a shared list of services or devices may be."`
	MetricsAddress   string           `default:":8080" env:"METRICS_ADDRESS" help:"Address of the metrics endpoint; 0 turns it off."`
	HealthAddress    string           `default:":8081" env:"HEALTH_ADDRESS" help:"Address of /healthz and /readyz; 0 turns them off."`
	Version          kong.VersionFlag `help:"Print the version and quit."`
}

// run the provider until the context ends.
func run(ctx context.Context, o *options) error {
	zl := zap.New(zap.UseDevMode(false), zap.Level(level(o.Debug))).WithName("provider-tailscale")
	log := logging.NewLogrLogger(zl)
	logging.SetFilteredKlogLogger(zl)
	// controller-runtime logs every reconcile at its info level.
	ctrl.SetLogger(debugOnly(zl, o.Debug))
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
	if err := setup(ctx, mgr, o, log, cancel); err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return errors.Wrap(err, "cannot run controllers")
	}
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

func level(debug bool) zapcore.Level {
	if debug {
		return zapcore.DebugLevel
	}
	return zapcore.InfoLevel
}

func debugOnly(l logr.Logger, debug bool) logr.Logger {
	if debug {
		return l
	}
	return logr.Discard()
}

// synced tells whether the cache has been filled.
func synced(ctx context.Context, c cache.Cache) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if !c.WaitForCacheSync(ctx) {
		return errors.New("caches are not filled yet")
	}
	return nil
}

func newManager(o *options) (ctrl.Manager, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			return nil, errors.Wrap(err, "cannot build scheme")
		}
	}
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return nil, errors.Wrap(err, "cannot get the API server's address")
	}
	// The cache holds Secrets of ours only, never all of a cluster's.
	ours, err := labels.NewRequirement(meta.LabelSecretType, selection.Exists, nil)
	if err != nil {
		return nil, errors.Wrap(err, "cannot build label selector")
	}
	lease, renew := time.Minute, 50*time.Second
	mgr, err := ctrl.NewManager(ratelimiter.LimitRESTConfig(cfg, o.MaxReconcileRate), ctrl.Options{
		Scheme: s,
		Cache: cache.Options{
			SyncPeriod: &o.Sync,
			ByObject: map[client.Object]cache.ByObject{
				&corev1.Secret{}: {Label: labels.NewSelector().Add(*ours)},
				&apiextensionsv1.CustomResourceDefinition{}: {Transform: customresourcesgate.TransformStripCRDSchema},
			},
		},
		// Secrets are read live: a stale key or node ID would be acted on.
		Client:                        client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
		Metrics:                       metricsserver.Options{BindAddress: o.MetricsAddress},
		HealthProbeBindAddress:        o.HealthAddress,
		LeaderElection:                o.LeaderElection,
		LeaderElectionID:              "provider-tailscale.gateway.tailscale.com",
		LeaseDuration:                 &lease,
		RenewDeadline:                 &renew,
		LeaderElectionReleaseOnCancel: true,
	})
	return mgr, errors.Wrap(err, "cannot make controller manager")
}

// setup adds the controllers, gated by their CRDs where the provider may watch
// those. fail ends the provider when one cannot be added later.
func setup(ctx context.Context, mgr ctrl.Manager, o *options, log logging.Logger, fail context.CancelCauseFunc) error {
	apiMetrics, mrMetrics, stateMetrics := tailscale.NewMetrics(), managed.NewMRMetricRecorder(), statemetrics.NewMRStateMetrics()
	metrics.Registry.MustRegister(apiMetrics, mrMetrics, stateMetrics)
	g := new(gate.Gate[schema.GroupVersionKind])
	co := common.Options{
		Options: xpcontroller.Options{
			Logger:                  log,
			MaxConcurrentReconciles: o.MaxReconcileRate,
			PollInterval:            o.Poll,
			GlobalRateLimiter:       ratelimiter.NewGlobal(o.MaxReconcileRate),
			Features:                &feature.Flags{},
			Gate:                    g,
			MetricOptions: &xpcontroller.MetricOptions{
				PollStateMetricInterval: o.PollStateMetric,
				MRMetrics:               mrMetrics,
				MRStateMetrics:          stateMetrics,
			},
		},
		Pool: tailscale.NewPool(tailscale.Options{Rate: o.APIRate, Burst: o.APIBurst, ListMaxAge: o.ListMaxAge, Metrics: apiMetrics}),
	}
	gated, err := canWatchCRDs(ctx, mgr)
	if err != nil {
		return err
	}
	if !gated {
		log.Info("Not allowed to watch CustomResourceDefinitions, starting all controllers at once")
		return controller.Setup(mgr, co)
	}
	controller.SetupGated(mgr, co, fail)
	return errors.Wrap(customresourcesgate.Setup(mgr, co.Options), "cannot set up the gate of CustomResourceDefinitions")
}

// canWatchCRDs asks the API server: the RBAC manager of some versions of
// Crossplane grants it to safe-start providers, others do not.
func canWatchCRDs(ctx context.Context, mgr ctrl.Manager) (bool, error) {
	for _, verb := range []string{"get", "list", "watch"} {
		r := &authv1.SelfSubjectAccessReview{Spec: authv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authv1.ResourceAttributes{Group: apiextensionsv1.GroupName, Resource: "customresourcedefinitions", Verb: verb},
		}}
		if err := mgr.GetClient().Create(ctx, r); err != nil {
			return false, errors.Wrap(err, "cannot ask for permissions on CustomResourceDefinitions")
		}
		if !r.Status.Allowed {
			return false, nil
		}
	}
	return true, nil
}
