// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/explain"
	"github.com/tailscale-gateway/tailscale-gateway/extension/gateways"
	"github.com/tailscale-gateway/tailscale-gateway/extension/health/report"
	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/observe"
	"github.com/tailscale-gateway/tailscale-gateway/extension/policies"
	"github.com/tailscale-gateway/tailscale-gateway/extension/source"
	"github.com/tailscale-gateway/tailscale-gateway/internal/leader"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
	"github.com/tailscale-gateway/tailscale-gateway/internal/version"
)

// reportRetry is the pause after a failure to start health reports.
const reportRetry = 10 * time.Second

// writers write objects of which there is one for all replicas. The zero value writes none.
type writers struct {
	tasks      []task
	collectors []prometheus.Collector

	// reports returns the GatewayReports. Nil means that there are none.
	reports explain.Reports
}

// inputs are what writers report.
type inputs struct {
	store *index.Store

	// targets are the probed targets, and changes those whose reports are due.
	targets report.Targets
	changes *report.Changes

	// hooks returns the hooks of a Gateway, NAMESPACE/NAME.
	hooks func(gateway string) observe.Hooks
}

// newWriters returns the writers of the replicas that write to an API server.
func newWriters(o Options, api *source.API, i inputs, log logging.Logger) (writers, error) {
	var out writers
	var duties []leader.Duty
	if o.Probe {
		duty, err := newHealthDuty(o, api, i, log)
		if err != nil {
			return writers{}, err
		}
		duties = append(duties, duty)
	}
	if o.Gateways {
		c, err := newGateways(o, api, i, log)
		if err != nil {
			return writers{}, err
		}
		duties = append(duties, c.Write)
		out.reports = c.Reports
		out.collectors = append(out.collectors, c.Metrics())
		out.tasks = append(out.tasks, task{name: "gateways", run: c.Watch}, task{name: "hook counts", run: c.CountHooks})
	}
	p := policies.Options{
		Gateway: o.Gateway,
		// A Gateway's dedicated extension may not search a tailnet.
		Discover: o.Discoveries && o.Gateway == nil,
		Log:      log,
	}
	duties = append(duties,
		policies.NewWriter(i.store, api.Informers, api.Client, p).Run,
		policies.NewTLSWriter(i.store, api.Informers, api.Client, p).Run)
	l, err := leader.New(api.Config, o.Namespace, leaseOf(o.Gateway), leader.DefaultTiming(), duties)
	if err != nil {
		return writers{}, err
	}
	out.tasks = append(out.tasks, task{name: "leader", uses: []string{taskObjects}, run: l.Run})
	return out, nil
}

// leaseName is the Lease that selects the replica that writes reports. The first reports were those of
// health.
const leaseName = "tailscale-gateway-extension-health"

// leaseOf returns the Lease of the replicas that serve one Gateway, or all.
func leaseOf(gateway *types.NamespacedName) string {
	if gateway == nil {
		return leaseName
	}
	return names.ExtensionLease(gateway.Name)
}

// newHealthDuty returns the duty that writes HealthReports. Traffic does not depend on them, so failures
// are retried.
func newHealthDuty(o Options, api *source.API, i inputs, log logging.Logger) (leader.Duty, error) {
	s, err := report.Scheme()
	if err != nil {
		return nil, err
	}
	kube, err := api.NewClient(api.Config, s)
	if err != nil {
		return nil, err
	}
	w := report.NewWriter(i.targets, index.NewRoutes(i.store), i.changes, kube, api.Informers, o.Gateway, log)
	return func(ctx context.Context) {
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			if err := w.Run(ctx); err != nil {
				log.Info("Cannot report health", "error", err)
			}
		}, reportRetry)
	}, nil
}

// newGateways returns the controller of the extension's part of TailscaleGateways.
func newGateways(o Options, api *source.API, i inputs, log logging.Logger) (*gateways.Controller, error) {
	cfg := rest.CopyConfig(api.Config)
	// Hundreds of routes may be due at once. The API server has its own priorities.
	cfg.QPS = -1
	kube, err := api.NewClient(cfg, api.Client.Scheme())
	if err != nil {
		return nil, err
	}
	opts := gateways.Options{
		Version: version.Version,
		Gateway: o.Gateway,
		Permitted: func(r ir.RouteKey, b ir.BackendRef) bool {
			return i.store.Snapshot().Permitted(r, b)
		},
		Hooks: func(gateway string) *tailnetv1alpha1.ReportedHooks { return reportedHooks(i.hooks(gateway)) },
		Log:   log,
	}
	if o.Gateway == nil {
		opts.Dedicated = func(dedicated map[types.NamespacedName]bool) {
			i.store.Serve(func(n types.NamespacedName) bool { return !dedicated[n] })
		}
	}
	return gateways.NewController(api.Informers, kube, opts), nil
}

func reportedHooks(h observe.Hooks) *tailnetv1alpha1.ReportedHooks {
	if h.Total == 0 {
		return nil
	}
	last := metav1.NewTime(h.Last).Rfc3339Copy()
	return &tailnetv1alpha1.ReportedHooks{Total: int64(h.Total), Failed: int64(h.Failed), LastCall: &last}
}
