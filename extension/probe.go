// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/extension/health"
	"github.com/tailscale-gateway/tailscale-gateway/extension/health/report"
	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// reportRetry is the pause after a failure to start reports.
const reportRetry = 10 * time.Second

// A prober probes endpoints, and writes HealthReports if there is a leader.
type prober struct {
	*health.Prober

	store  *index.Store
	writer *report.Writer
	log    logging.Logger
}

// newProber returns a prober, which writes no reports without a leader.
func newProber(c *CLI, src *kubeSource, l *leader, store *index.Store, log logging.Logger) (*prober, error) {
	p := &prober{store: store, log: log}
	p.Prober = health.NewProber(store, health.Options{Log: log, Checker: health.NetChecker{Loopback: c.dialPolicy().Loopback}, Transition: func(keys []ir.TargetKey) {
		if p.writer != nil {
			p.writer.Changed(keys)
		}
	}})
	if !c.Probe || l == nil {
		return p, nil
	}
	s, err := report.Scheme()
	if err != nil {
		return nil, err
	}
	kube, err := client.New(src.cfg, client.Options{Scheme: s, Mapper: src.mapper})
	if err != nil {
		return nil, errors.Wrap(err, "cannot make a client of the Kubernetes API")
	}
	p.writer = report.NewWriter(p, kube, src.informers, c.only(), log)
	l.duties = append(l.duties, p.report)
	return p, nil
}

// run probes until ctx ends. synced is closed when the store is complete.
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
	return g.Wait()
}

// report writes HealthReports until ctx ends. Traffic does not depend on them, so failures are
// retried.
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

// withHealth adds the handler of endpoints' health.
func withHealth(h http.Handler, p http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", h)
	mux.Handle("GET /endpoints", p)
	return mux
}
