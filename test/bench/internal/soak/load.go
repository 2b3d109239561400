// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/gateway"
	"github.com/tailscale-gateway/tailscale-gateway/test/load"
)

const (
	// quietRoutes is the number of routes that do not change, and quietTargets that of their
	// targets.
	quietRoutes  = 40
	quietTargets = 8

	// clients send one request after the other, half of them on a new connection for each request.
	clients     = 4
	requestRest = 20 * time.Millisecond

	// requestLimit is longer than Envoy's own limit, after which Envoy returns 504.
	requestLimit = 20 * time.Second
)

// traffic is a load on routes that do not change. Requests may be cut during its events.
type traffic struct {
	load.Events
	*load.Load
}

// startTraffic starts a load, which ends with ctx.
func (w *Environment) startTraffic(ctx context.Context) *traffic {
	h := load.HTTP{Dial: w.gateway.Dial}
	for i := range quietRoutes {
		r := w.quietRoute(i)
		h.Targets = append(h.Targets, r.answeredBy(r.rules[0]))
	}
	return &traffic{Load: load.Start(ctx, load.Options{
		Client: func(worker int) load.Client {
			h := h
			h.NewConnections = worker%2 == 0
			return h.Client()
		},
		Workers: clients, Interval: requestRest, Timeout: requestLimit,
	})}
}

// lost returns the lost requests that were not cut.
func (l *traffic) lost() []load.Failure {
	lost, _ := l.Split(l.Failures())
	return lost
}

// answeredBy returns the requests of a route that a target must answer.
func (r *route) answeredBy(t *target) load.Target {
	return gateway.Target(r.host(), t.name, func(address string) error {
		if !slices.Contains(t.answers(), address) {
			return errors.Errorf("%s/%s returns %s, want one of %v", r.host(), t.name, address, t.answers())
		}
		return nil
	})
}

// probe sends one request to a route's target.
func (w *Environment) probe(ctx context.Context, c *http.Client, r *route, t *target) error {
	return w.get(ctx, c, r.answeredBy(t))
}

// get sends one request.
func (w *Environment) get(ctx context.Context, c *http.Client, t load.Target) error {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	_, err := load.Get(ctx, c, t)
	return err
}
