// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/harness"
	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/swarm"
)

// swarmPoll is shorter than the provider's default, so that more failures fit into the same time.
const swarmPoll = 15 * time.Second

// swarm measures conflicts of many clusters that share a service.
func (c *cli) swarm(ctx context.Context, env *harness.Env) ([]Result, error) {
	seed := c.Seed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	r, err := swarm.Run(ctx, env, swarm.Options{Members: c.Members, Duration: c.Swarm, Poll: swarmPoll, Seed: seed, Progress: progress})
	if err != nil {
		return nil, err
	}
	for problem, list := range map[string][]string{"lost": r.Lost, "written by others": r.Foreign, "left over": r.Leftovers} {
		if len(list) > 0 {
			progress("swarm: %s: %s", problem, strings.Join(list, "; "))
		}
	}
	readdressed := 0.0
	if r.Readdressed {
		readdressed = 1
	}
	return []Result{
		plain("registry.records_lost", float64(len(r.Lost)), "records", 0),
		plain("registry.records_written_by_others", float64(len(r.Foreign)), "writes", 0),
		plain("registry.writes_at_rest", float64(r.WritesAtRest), "writes", 0),
		plain("registry.restored_seconds", r.Restored.Seconds(), "s", swarmPoll.Seconds()),
		plain("registry.addresses_changed", readdressed, "services", 0),
		plain("registry.left_over", float64(len(r.Leftovers)), "services", 0),
	}, nil
}
