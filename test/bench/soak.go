// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/harness"
	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/soak"
)

// Goals of a soak.
const (
	// maxGrowth is in percent over the run.
	maxGrowth = 5

	// maxSilence is how long a client may take to notice that a replica has gone silently, or is
	// back: the time of keepalives, and some for the connection to another replica.
	maxSilence = 16 // s
)

// soak runs changes and failures for a long time.
func (c *cli) soak(ctx context.Context) ([]Result, error) {
	bin, err := os.MkdirTemp("", "tailscale-gateway-bench-")
	if err != nil {
		return nil, errors.Wrap(err, "cannot create a folder for programs")
	}
	defer os.RemoveAll(bin)
	progress("soak: building")
	if err := harness.Build(ctx, bin, "./extension"); err != nil {
		return nil, err
	}
	seed := c.Seed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	progress("soak: %s over %d routes, seed %d; %s", c.Duration, c.Routes, seed, load())
	r, err := soak.Run(ctx, soak.Options{
		Program: filepath.Join(bin, "extension"), Logs: filepath.Join(c.Logs, "soak"),
		Duration: c.Duration, Routes: c.Routes, Edits: c.Edits, Seed: seed,
		Say: func(format string, args ...any) { progress("soak: "+format, args...) },
	})
	if err != nil {
		return nil, err
	}
	progress("soak: edits %v, outages %v; %s", r.Edits, r.Outages, load())
	progress("soak: changes of routes were served after %v at most, of endpoints after %v", r.RoutesLate, r.EndpointsLate)
	rs := []Result{
		plain("extension.soak_lost_requests", float64(r.Lost), "requests", 0),
		plain("extension.soak_routes_late", longest(r.RoutesLate).Seconds(), "s", maxSilence),
		plain("extension.soak_endpoints_late", longest(r.EndpointsLate).Seconds(), "s", maxSilence),
		plain("extension.soak_envoy_recovery", r.EnvoyRecovered.Seconds(), "s", maxSilence),
		plain("extension.soak_wrong_rules", float64(r.Wrong), "rules", 0),
		plain("extension.soak_different", float64(r.Different), "resources", 0),
	}
	progress("soak: %d requests, the longest took %s", r.Requests, r.Longest.Round(time.Millisecond))
	for _, metric := range []string{soak.RSS, soak.Heap, soak.Goroutines, soak.Files, soak.Streams, soak.EnvoyMemory, soak.EnvoyClusters} {
		t := r.Trends[metric]
		progress("soak: %s from %.0f to %.0f over the second half", metric, t.First, t.Last)
		rs = append(rs, plain("extension.soak_"+metric+"_growth", t.Growth, "%", maxGrowth))
	}
	return rs, nil
}

func longest(durations map[string]time.Duration) time.Duration {
	return slices.Max(append(slices.Collect(maps.Values(durations)), 0))
}
