// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/controlplane"
	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/harness"
)

const (
	// smallerScale is the share of the objects with which figures are compared.
	smallerScale = 10

	// servicesPerEndpoints and servicesPerGateway are the numbers of services for each of the others.
	servicesPerEndpoints = 5
	servicesPerGateway   = 20

	// steadyQuiet is how long nothing is written before a control plane counts as steady.
	steadyQuiet = 30 * time.Second

	// maxOurMemory is the limit of the containers of provider and function in the chart, in MiB, and
	// maxCrossplaneMemory that of Crossplane's own chart.
	maxOurMemory        = 512
	maxCrossplaneMemory = 1024
)

// A scaleCost is what one number of composites costs.
type scaleCost struct {
	size controlplane.Size

	// ready and steady are how long it took until all were ready, and until nothing was written any more.
	ready, steady time.Duration

	// growth is what was used until then, and rest what was used in some polls at rest.
	growth, rest controlplane.Use
	polls        float64

	// Processor times until then, and memory at the end.
	provider, function, crossplane processCost
}

// A processCost is the processor time and the memory of a process.
type processCost struct {
	processor time.Duration
	memory    harness.Memory
}

// scale measures many composites with real Crossplane, function and provider, compared with a tenth of them
// in the same run.
func (c *cli) scale(ctx context.Context) ([]Result, error) {
	bin, err := os.MkdirTemp("", "tailscale-gateway-bench-")
	if err != nil {
		return nil, errors.Wrap(err, "cannot create a folder for programs")
	}
	defer os.RemoveAll(bin) // The folder is temporary.
	progress("scale: building the provider and the function")
	if err := harness.Build(ctx, bin, "./cmd/provider", "./cmd/function"); err != nil {
		return nil, err
	}
	few, err := c.scaleCost(ctx, bin, c.ScaleServices/smallerScale)
	if err != nil {
		return nil, err
	}
	many, err := c.scaleCost(ctx, bin, c.ScaleServices)
	if err != nil {
		return nil, err
	}
	return scaleResults(few, many), nil
}

// scaleCost measures this many services, with their share of endpoints and Gateways.
func (c *cli) scaleCost(ctx context.Context, bin string, services int) (cost scaleCost, err error) {
	cost.polls = float64(c.Polls)
	cost.size = controlplane.Size{Services: services, Endpoints: max(services/servicesPerEndpoints, 1), Gateways: max(services/servicesPerGateway, 1)}
	progress("scale: %+v; %s", cost.size, load())
	p, err := controlplane.Start(ctx, bin, filepath.Join(c.Logs, fmt.Sprintf("scale-%d", services)), cost.size)
	if err != nil {
		return cost, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	start, err := p.Use(ctx)
	if err != nil {
		return cost, err
	}
	if cost.steady, cost.ready, err = p.Fill(ctx, steadyQuiet, progress); err != nil {
		return cost, err
	}
	end, err := p.Use(ctx)
	if err != nil {
		return cost, err
	}
	cost.growth = end.Since(start)
	progress("scale: steady after %s; writes by %v; %+v", cost.steady.Round(time.Second), cost.growth.Writes, cost.growth.Functions)
	if err := harness.Pause(ctx, pollInterval); err != nil {
		return cost, err
	}
	if cost.rest, err = p.Rest(ctx, time.Duration(c.Polls)*pollInterval); err != nil {
		return cost, err
	}
	progress("scale: in %d polls at rest: writes by %v, %d lists, %d other calls of Tailscale's API, %+v", c.Polls, cost.rest.Writes, cost.rest.Lists, cost.rest.Others, cost.rest.Functions)
	for _, s := range []struct {
		process *harness.Provider
		cost    *processCost
	}{{p.Provider, &cost.provider}, {p.Function, &cost.function}, {p.Crossplane, &cost.crossplane}} {
		s.cost.processor = cost.growth.Processor[s.process]
		if s.cost.memory, err = s.process.Memory(); err != nil {
			return cost, err
		}
	}
	return cost, nil
}

// scaleResults compares many composites with few. Crossplane's share has separate rows.
func scaleResults(few, many scaleCost) []Result {
	share := func(total float64, c scaleCost) float64 { return total / float64(c.size.Services) }
	ratio := func(name, unit string, total func(scaleCost) float64) Result {
		return compared(name, share(total(many), many), share(total(few), few), unit, maxPerObject)
	}
	ours := func(c scaleCost) float64 { return milliseconds(c.provider.processor + c.function.processor) }
	writes := func(program string) func(scaleCost) float64 {
		return func(c scaleCost) float64 { return float64(c.growth.Writes.Total(program)) }
	}
	return []Result{
		ratio("scale.steady_per_service", "ms", func(c scaleCost) float64 { return milliseconds(c.steady) }),
		ratio("scale.ready_per_service", "ms", func(c scaleCost) float64 { return milliseconds(c.ready) }),
		ratio("scale.processor_per_service", "ms", ours),
		ratio("scale.crossplane_processor_per_service", "ms", func(c scaleCost) float64 { return milliseconds(c.crossplane.processor) }),
		ratio("scale.writes_per_service", "writes", writes(controlplane.Provider)),
		ratio("scale.crossplane_writes_per_service", "writes", writes(controlplane.Crossplane)),
		ratio("scale.tailnet_calls_per_service", "calls", func(c scaleCost) float64 { return float64(c.growth.Lists + c.growth.Others) }),
		ratio("scale.function_calls_per_service", "calls", func(c scaleCost) float64 { return c.growth.Functions.Calls }),
		plain("scale.breaker_opens", many.growth.Functions.Opens, "opens", 0),
		plain("scale.provider_rss_mib", many.provider.memory.RSS, "MiB", maxOurMemory),
		plain("scale.provider_rss_peak_mib", many.provider.memory.Peak, "MiB", maxOurMemory),
		plain("scale.function_rss_peak_mib", many.function.memory.Peak, "MiB", maxOurMemory),
		plain("scale.crossplane_rss_peak_mib", many.crossplane.memory.Peak, "MiB", maxCrossplaneMemory),
		plain("scale.rest_writes", float64(many.rest.Writes.Total(controlplane.Provider)), "writes", 0),
		plain("scale.rest_crossplane_writes", float64(many.rest.Writes.Total(controlplane.Crossplane)), "writes", 0),
		plain("scale.rest_function_calls", many.rest.Functions.Calls, "calls", 0),
		plain("scale.rest_list_calls_per_poll", float64(many.rest.Lists)/many.polls, "calls", goalLists),
		plain("scale.rest_other_calls_per_poll", float64(many.rest.Others)/many.polls, "calls", goalOthers),
		plain("scale.rest_processor_per_poll", processorOf(many.rest).Seconds()/many.polls, "s", maxPollProcessor),
	}
}

// processorOf returns the processor time of all processes.
func processorOf(u controlplane.Use) time.Duration {
	total := time.Duration(0)
	for _, d := range slices.Collect(maps.Values(u.Processor)) {
		total += d
	}
	return total
}
