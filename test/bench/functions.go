// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/sidebyside"
)

const (
	// bigReplicas is the number of replicas for each direction.
	bigReplicas = 5

	// quiet is how long no function is called before the lab counts as idle.
	quiet = time.Minute
)

// functions measures the load of the functions on Crossplane: whether creating and scaling proxies,
// and many services on them, ever opens a circuit breaker, and how often functions are called while
// nothing changes.
func (c *cli) functions(ctx context.Context, lab *sidebyside.Lab) ([]Result, error) {
	ours := sidebyside.NewOurs(lab, "ours", c.Networking)
	if err := ours.Install(ctx); err != nil {
		return nil, err
	}
	before, err := lab.Counters(ctx)
	if err != nil {
		return nil, err
	}
	for _, replicas := range []int{bigReplicas, 1, bigReplicas} {
		progress("functions: %d proxies each way", replicas)
		if err := ours.Big(ctx, replicas); err != nil {
			return nil, err
		}
	}
	progress("functions: %d services", c.Services)
	if err := ours.BigServices(ctx, c.Services); err != nil {
		return nil, err
	}
	after, err := lab.Counters(ctx)
	if err != nil {
		return nil, err
	}
	rs := []Result{plain("functions.breaker_opens", after.Opens-before.Opens, "opens", 0)}

	progress("functions: waiting for rest, then %s of it", c.Idle)
	if err := lab.Quiet(ctx, quiet); err != nil {
		return rs, err
	}
	began, err := lab.Counters(ctx)
	if err != nil {
		return rs, err
	}
	select {
	case <-ctx.Done():
		return rs, ctx.Err()
	case <-time.After(c.Idle):
	}
	ended, err := lab.Counters(ctx)
	return append(rs, plain("functions.idle_calls", ended.Calls-began.Calls, "calls", 0)), errors.Wrap(err, "cannot count calls")
}
