// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/gateway"
)

const (
	// routesPerTarget is the number of routes that lead to each target.
	routesPerTarget = 4

	// smallerShare is the share of the routes with which figures are compared.
	smallerShare = 4

	// maxPerObject is how much more an object may cost among many than among few.
	maxPerObject = 1.2

	// maxResidentAtScale is the goal for the memory of the extension, in MB: as much for each route as
	// maxResident is for manyRoutes.
	maxResidentAtScale = maxResident * 4

	// maxPeakAtScale is the limit of the extension's container in its chart, in MB.
	maxPeakAtScale = 512 * mebibyte / megabyte

	// scaleTurns is the number of turns of each side, because a translation of so many routes takes seconds.
	scaleTurns = 2

	// hookSamples is the number of translations over which hooks are timed.
	hookSamples = 5
)

// routesCost is what one number of routes costs the extension.
type routesCost struct {
	routes int
	// resident memory at rest, and its peak while Envoy Gateway translates, in MB.
	resident, peak float64
	// update of the index, and a hook, in milliseconds.
	update, hook float64
	// translation has the times with the extension and with one that does nothing.
	translation, nothing []time.Duration
}

// routes measures the extension with many routes, compared with a quarter of them in the same run.
func (c *cli) routes(ctx context.Context) ([]Result, error) {
	var rs []Result
	return withExtension(ctx, func(bin string) ([]Result, error) {
		idle := 0.0
		err := c.inEnvironment(ctx, bin, gateway.Options{Routes: 1}, func(w *gateway.Environment) (err error) {
			idle, err = w.ExtensionMemory(ctx)
			return err
		})
		if err != nil {
			return rs, err
		}
		few, err := c.routesCost(ctx, bin, c.ScaleRoutes/smallerShare)
		if err != nil {
			return rs, err
		}
		many, err := c.routesCost(ctx, bin, c.ScaleRoutes)
		if many.resident == 0 {
			return rs, err
		}
		rs = routesResults(idle, few, many)
		if err == nil {
			rs = append(rs, paired("scale.routes_translate_ratio", many.translation, many.nothing, maxTranslateRatio))
		}
		return rs, err
	})
}

// routesCost measures the cost of one number of routes.
func (c *cli) routesCost(ctx context.Context, bin string, n int) (routesCost, error) {
	cost := routesCost{routes: n}
	options := gateway.Options{Routes: n, Targets: max(n/routesPerTarget, 1)}
	err := c.inEnvironment(ctx, bin, options, func(w *gateway.Environment) error {
		progress("routes: %d routes answer; updating the index", n)
		var err error
		if cost.update, err = w.Updates(ctx, updateSamples); err != nil {
			return err
		}
		if cost.hook, err = w.Hooks(ctx, hookSamples); err != nil {
			return err
		}
		if cost.resident, err = w.ExtensionMemory(ctx); err != nil {
			return err
		}
		if cost.peak, err = w.ExtensionPeak(); err != nil {
			return err
		}
		progress("routes: %d routes: an update takes %.3f ms, a hook %.1f ms, %.1f MB, at most %.1f MB", n, cost.update, cost.hook, cost.resident, cost.peak)
		if err := w.HeapProfile(ctx, c.Logs); err != nil {
			return err
		}
		if n < c.ScaleRoutes {
			return nil // The few are compared by their hooks.
		}
		cost.translation, cost.nothing, err = translationTurns(ctx, w, scaleTurns)
		return errors.Wrapf(err, "cannot translate %d routes", n)
	})
	return cost, err
}

// routesResults compares many routes with few. Idle is the memory with one route.
func routesResults(idle float64, few, many routesCost) []Result {
	share := func(total float64, c routesCost) float64 { return total / float64(c.routes) * 1000 }
	return []Result{
		plain("scale.routes_rss_mb", many.resident, "MB", maxResidentAtScale),
		plain("scale.routes_rss_peak_mb", many.peak, "MB", maxPeakAtScale),
		compared("scale.routes_rss_per_1000_ratio", share(many.resident-idle, many), share(few.resident-idle, few), "MB", maxPerObject),
		plain("scale.routes_index_update_ms", many.update, "ms", maxUpdate),
		compared("scale.routes_index_update_ratio", many.update, few.update, "ms", maxPerObject),
		compared("scale.routes_hook_per_1000_ratio", share(many.hook, many), share(few.hook, few), "ms", maxPerObject),
	}
}
