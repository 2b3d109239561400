// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/http"

	"golang.org/x/sync/errgroup"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/extension/health"
	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
)

func newProber(_ *CLI, store *index.Store, log logging.Logger) *health.Prober {
	return health.NewProber(store, health.Options{Log: log})
}

// probe the endpoints of each snapshot.
func probe(ctx context.Context, store *index.Store, p *health.Prober) error {
	changes := store.Subscribe()
	defer changes.Close()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return p.Run(ctx) })
	g.Go(func() error { return each(ctx, changes, p.Changed) })
	return g.Wait()
}

// withHealth has the health of endpoints shown beside all else.
func withHealth(h http.Handler, p *health.Prober) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", h)
	mux.Handle("GET /endpoints", p)
	return mux
}
