// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/http"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/extension/health"
	"github.com/tailscale-gateway/tailscale-gateway/extension/health/report"
	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
)

const (
	// leaseName of the Lease by which replicas settle who writes HealthReports.
	leaseName = "tailscale-gateway-extension-health"

	// Who does not renew the Lease for leaseTime has lost it; it is renewed within
	// renewTime, each tryTime. They are the defaults of Kubernetes' own components.
	leaseTime = 15 * time.Second
	renewTime = 10 * time.Second
	tryTime   = 2 * time.Second

	// reportRetry after reports could not be begun.
	reportRetry = 10 * time.Second
)

// A prober is who probes, and who tells the Kubernetes API, if anybody is to.
type prober struct {
	*health.Prober

	store  *index.Store
	writer *report.Writer
	lock   resourcelock.Interface
	log    logging.Logger
}

func newProber(c *CLI, src source, store *index.Store, log logging.Logger) (*prober, error) {
	p := &prober{store: store, log: log}
	p.Prober = health.NewProber(store, health.Options{Log: log, Transition: func(of []index.TargetKey) {
		if p.writer != nil {
			p.writer.Changed(of)
		}
	}})
	k, ok := src.(*kubeSource)
	if !ok || !c.Probe || c.Namespace == "" {
		return p, nil
	}
	s, err := report.Scheme()
	if err != nil {
		return nil, err
	}
	kube, err := client.New(k.cfg, client.Options{Scheme: s})
	if err != nil {
		return nil, errors.Wrap(err, "cannot make a client of the Kubernetes API")
	}
	leases, err := kubernetes.NewForConfig(k.cfg)
	if err != nil {
		return nil, errors.Wrap(err, "cannot make a client of the Kubernetes API")
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, errors.Wrap(err, "cannot tell the name of this host")
	}
	p.writer = report.NewWriter(p, kube, k.informers, log)
	p.lock = &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: c.Namespace, Name: leaseName},
		Client:     leases.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
	}
	return p, nil
}

// run until ctx ends. Synced is closed when the store is complete.
func (p *prober) run(ctx context.Context, synced <-chan struct{}) error {
	select {
	case <-ctx.Done():
		return nil
	case <-synced:
	}
	changes := p.store.Subscribe()
	defer changes.Close()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return p.Run(ctx) })
	g.Go(func() error { return each(ctx, changes, p.Changed) })
	if p.writer != nil {
		g.Go(func() error { return p.lead(ctx) })
	}
	return g.Wait()
}

// lead writes reports whenever this replica is the one to.
func (p *prober) lead(ctx context.Context) error {
	e, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: p.lock, LeaseDuration: leaseTime, RenewDeadline: renewTime, RetryPeriod: tryTime,
		ReleaseOnCancel: true, Name: leaseName,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: p.report, OnStoppedLeading: func() {}},
	})
	if err != nil {
		return errors.Wrap(err, "cannot elect who reports health")
	}
	for ctx.Err() == nil {
		// It ends when the Lease is lost, too.
		e.Run(ctx)
	}
	return nil
}

// report until ctx ends. Traffic does not depend on it: what fails is tried again.
func (p *prober) report(ctx context.Context) {
	for ctx.Err() == nil {
		if err := p.writer.Run(ctx); err != nil {
			p.log.Info("Cannot report health", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(reportRetry):
			}
		}
	}
}

// withHealth has the health of endpoints shown beside all else.
func withHealth(h http.Handler, p http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", h)
	mux.Handle("GET /endpoints", p)
	return mux
}
