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

	// hostReplicas is the number of replicas for each direction while services are created at once:
	// the default of TailscaleEndpoints.
	hostReplicas = 2

	// fewServices and manyServices are created at once.
	fewServices, manyServices = 60, 200

	// settled is how long services are watched after the last has become ready.
	settled = time.Minute

	// goalWrites and goalMostWrites are how often a service may be written until it is ready: the
	// median and the maximum.
	goalWrites, goalMostWrites = 12, 14

	// goalReady and goalReadyMany are how many seconds services may take until they are ready.
	goalReady, goalReadyMany = 30, 100

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
	start, err := lab.Counters(ctx)
	if err != nil {
		return nil, err
	}
	scale := func(sizes ...int) error {
		for _, replicas := range sizes {
			progress("functions: %d proxies in each direction", replicas)
			if err := ours.Big(ctx, replicas); err != nil {
				return err
			}
		}
		return nil
	}
	if err := scale(bigReplicas, 1, hostReplicas); err != nil {
		return nil, err
	}
	rs, err := c.creations(ctx, lab, ours)
	if err != nil {
		return rs, err
	}
	if err := scale(bigReplicas); err != nil {
		return rs, err
	}
	progress("functions: %d services", c.Services)
	if err := ours.BigServices(ctx, c.Services); err != nil {
		return rs, err
	}
	end, err := lab.Counters(ctx)
	if err != nil {
		return rs, err
	}
	rs = append(rs, plain("functions.breaker_opens", end.Opens-start.Opens, "opens", 0))

	progress("functions: waiting until functions are idle, then counting calls for %s", c.Idle)
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

// creations measures the flips, writes and times of services that are created at once, until they
// stay ready, with two replicas of the function, between which Crossplane spreads its calls, and
// with one.
func (c *cli) creations(ctx context.Context, lab *sidebyside.Lab, ours *sidebyside.Ours) ([]Result, error) {
	if err := lab.FunctionReplicas(ctx, 2); err != nil {
		return nil, err
	}
	progress("functions: %d services at once, two replicas of the function", fewServices)
	two, err := ours.CreateServices(ctx, "two", fewServices, settled)
	if err != nil {
		return nil, err
	}
	rs := []Result{
		plain("functions.ready_flips_at_60_two_replicas", float64(two.Flips), "flips", 0),
		plain("functions.writes_per_service_two_replicas_max", float64(two.Writes[len(two.Writes)-1]), "writes", goalMostWrites),
	}
	if err := ours.DeleteServices(ctx, "two"); err != nil {
		return rs, err
	}
	if err := lab.FunctionReplicas(ctx, 1); err != nil {
		return rs, err
	}
	progress("functions: %d services at once", fewServices)
	few, err := ours.CreateServices(ctx, "few", fewServices, settled)
	if err != nil {
		return rs, err
	}
	rs = append(rs,
		plain("functions.ready_flips_at_60", float64(few.Flips), "flips", 0),
		plain("functions.writes_per_service_p50", float64(few.Writes[len(few.Writes)/2]), "writes", goalWrites),
		plain("functions.writes_per_service_max", float64(few.Writes[len(few.Writes)-1]), "writes", goalMostWrites),
		plain("functions.ready_p99_at_60_s", percentile(few.Took, 99).Seconds(), "s", goalReady),
	)
	if err := ours.DeleteServices(ctx, "few"); err != nil {
		return rs, err
	}
	progress("functions: %d services at once", manyServices)
	many, err := ours.CreateServices(ctx, "many", manyServices, settled)
	if err != nil {
		return rs, err
	}
	rs = append(rs,
		plain("functions.ready_flips_at_200", float64(many.Flips), "flips", 0),
		plain("functions.writes_per_service_at_200_max", float64(many.Writes[len(many.Writes)-1]), "writes", goalMostWrites),
		plain("functions.ready_p99_at_200_s", percentile(many.Took, 99).Seconds(), "s", goalReadyMany),
	)
	return rs, ours.DeleteServices(ctx, "many")
}
