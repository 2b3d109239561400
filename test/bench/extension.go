// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/gateway"
	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/harness"
)

// Goals, and the sizes for which they hold.
const (
	fewRoutes  = 1000
	manyRoutes = 5000

	// The sides take turns this often, each with several translations.
	turns            = 5
	translationsEach = 3

	// updateSamples is the number of changes over which the index is measured.
	updateSamples = 50

	maxTranslateRatio = 1.5
	maxSharedMemory   = 1

	// With distinct targets, each route has a separate target.
	maxDistinctTranslate = 1.1
	maxDistinctMemory    = 1.15

	maxLive     = 100 // ms
	maxUpdate   = 5   // ms
	maxResident = 150 // MB
	maxAtRest   = 40  // MiB

	// Units of memory, in bytes.
	megabyte = 1e6
	mebibyte = 1 << 20

	// maxPolicyRatio compares the time that a policy of four rules adds to a translation with the time
	// that our backends of as many routes add. Before inserted messages were shared it was 9.5 with
	// 5000 routes: the goal is a fifth.
	maxPolicyRatio = 1.9

	// policyRuns is the number of runs of each of the two benchmarks, which take turns.
	policyRuns = 5

	// maxStream is the cost of a stream in the library's server that this server replaces, in kB.
	maxStream = 230
)

// extension measures Envoy Gateway and Envoy with the extension, compared with the same routes on
// plain Services and with an extension that does nothing.
func (c *cli) extension(ctx context.Context) ([]Result, error) {
	return withExtension(ctx, func(bin string) ([]Result, error) { return c.withRoutes(ctx, bin) })
}

// withExtension runs fn with a folder of the built extension.
func withExtension(ctx context.Context, fn func(bin string) ([]Result, error)) ([]Result, error) {
	bin, err := os.MkdirTemp("", "tailscale-gateway-bench-")
	if err != nil {
		return nil, errors.Wrap(err, "cannot create a folder for programs")
	}
	defer os.RemoveAll(bin)
	progress("extension: building")
	if err := harness.Build(ctx, bin, "./extension"); err != nil {
		return nil, err
	}
	return fn(bin)
}

// withRoutes measures the cost of many routes.
func (c *cli) withRoutes(ctx context.Context, bin string) ([]Result, error) {
	var rs []Result
	var errs []error
	atRest, err := c.atRest(ctx, bin)
	rs, errs = append(rs, atRest...), append(errs, err)
	for _, distinct := range []bool{false, true} {
		few, err := c.fewRoutes(ctx, bin, distinct)
		many, failed := c.manyRoutes(ctx, bin, distinct)
		rs = append(append(rs, few...), many...)
		errs = append(errs, err, failed)
	}
	found, err := c.found(ctx, bin)
	rs, errs = append(rs, found...), append(errs, err)
	policies, err := policyRatios(ctx)
	rs, errs = append(rs, policies...), append(errs, err)
	kb, err := streamKB(ctx)
	if err == nil {
		rs = append(rs, plain("extension.stream_kb", kb, "kB", maxStream))
	}
	return rs, errors.Join(append(errs, err)...)
}

// atRest measures the memory of the extension with one route.
func (c *cli) atRest(ctx context.Context, bin string) ([]Result, error) {
	var rs []Result
	return rs, c.inEnvironment(ctx, bin, gateway.Options{Routes: 1}, func(w *gateway.Environment) error {
		memory, err := w.ExtensionMemory(ctx)
		rs = append(rs, plain("extension.rest_rss_mib", memory*megabyte/mebibyte, "MiB", maxAtRest))
		return err
	})
}

// fewRoutes measures the cost of routes in Envoy and Envoy Gateway.
func (c *cli) fewRoutes(ctx context.Context, bin string, distinct bool) ([]Result, error) {
	baseline := 0.0
	err := c.inEnvironment(ctx, bin, gateway.Options{Routes: fewRoutes, Targets: targetsOf(fewRoutes, distinct), Plain: true}, func(w *gateway.Environment) error {
		var err error
		baseline, err = w.EnvoyMemory(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	var rs []Result
	return rs, c.inEnvironment(ctx, bin, gateway.Options{Routes: fewRoutes, Targets: targetsOf(fewRoutes, distinct)}, func(w *gateway.Environment) error {
		memory, err := w.EnvoyMemory(ctx)
		if err != nil {
			return err
		}
		name, goal := "extension.envoy_memory_ratio_1000", float64(maxSharedMemory)
		if distinct {
			name, goal = "extension.envoy_memory_ratio_distinct", maxDistinctMemory
		}
		rs = append(rs, compared(name, memory, baseline, "MiB", goal))
		r, err := translateRatio(ctx, w, fewRoutes, distinct)
		rs = append(rs, r...)
		return err
	})
}

// manyRoutes measures the cost of routes in the extension, too.
func (c *cli) manyRoutes(ctx context.Context, bin string, distinct bool) ([]Result, error) {
	var rs []Result
	return rs, c.inEnvironment(ctx, bin, gateway.Options{Routes: manyRoutes, Targets: targetsOf(manyRoutes, distinct)}, func(w *gateway.Environment) error {
		name := "extension.index_update_ms"
		if distinct {
			name += "_distinct"
		} else {
			live, err := c.live(ctx, w)
			rs = append(rs, live...)
			if err != nil {
				return err
			}
		}
		update, err := w.Updates(ctx, updateSamples)
		if err != nil {
			return err
		}
		rs = append(rs, plain(name, update, "ms", maxUpdate))
		r, err := translateRatio(ctx, w, manyRoutes, distinct)
		rs = append(rs, r...)
		return err
	})
}

// live measures how soon endpoints serve, and the extension's resources at that time.
func (c *cli) live(ctx context.Context, w *gateway.Environment) ([]Result, error) {
	took, err := w.Live(ctx, c.Changes)
	if err != nil {
		return nil, err
	}
	progress("extension: endpoints served after %s at the median, %s at most", median(took), slices.Max(took))
	memory, err := w.ExtensionMemory(ctx)
	return []Result{
		plain("extension.endpoint_live_p99_ms", milliseconds(percentile(took, 99)), "ms", maxLive),
		plain("extension.rss_mb", memory, "MB", maxResident),
	}, err
}

// targetsOf returns the number of targets of this many routes.
func targetsOf(routes int, distinct bool) int {
	if distinct {
		return routes
	}
	return 1
}

func translateName(routes int, distinct bool) string {
	if distinct {
		return fmt.Sprintf("extension.translate_ratio_distinct_%d", routes)
	}
	return fmt.Sprintf("extension.translate_ratio_%d", routes)
}

// inEnvironment runs fn in a new environment.
func (c *cli) inEnvironment(ctx context.Context, bin string, o gateway.Options, fn func(w *gateway.Environment) error) error {
	progress("extension: %d routes, %d targets, plain Services %t; %s", o.Routes, max(o.Targets, 1), o.Plain, load())
	w, err := gateway.Start(ctx, o, filepath.Join(bin, "extension"), filepath.Join(c.Logs, "extension"))
	if err != nil {
		return err
	}
	return errors.Join(fn(w), w.Stop())
}

// translateRatio compares translations with the running extension and with one that does nothing.
func translateRatio(ctx context.Context, w *gateway.Environment, routes int, distinct bool) ([]Result, error) {
	ours, nothing, err := translationTurns(ctx, w, turns)
	if err != nil {
		return nil, err
	}
	progress("extension: translations took %s, with one that does nothing %s", ours, nothing)
	goal := maxTranslateRatio
	if distinct {
		goal = maxDistinctTranslate
	}
	return []Result{paired(translateName(routes, distinct), ours, nothing, goal)}, nil
}

// translationTurns returns the times of translations with the running extension and with one that does
// nothing. Both take turns, so that other load on the machine affects both.
func translationTurns(ctx context.Context, w *gateway.Environment, n int) (ours, nothing []time.Duration, err error) {
	for turn := range n {
		if turn > 0 {
			if err := w.StartExtension(ctx); err != nil {
				return nil, nil, err
			}
		}
		took, err := w.Translations(ctx, translationsEach)
		if err != nil {
			return nil, nil, err
		}
		ours = append(ours, took...)
		if err := w.StartEcho(ctx); err != nil {
			return nil, nil, err
		}
		if took, err = w.Translations(ctx, translationsEach); err != nil {
			return nil, nil, err
		}
		nothing = append(nothing, took...)
	}
	return ours, nothing, nil
}

// policyRatios compares the cost of a policy in a translation with that of our backends, from the
// benchmarks of the hooks.
func policyRatios(ctx context.Context) ([]Result, error) {
	var rs []Result
	for _, n := range []int{fewRoutes, manyRoutes} {
		var policy, backends []time.Duration
		for range policyRuns {
			for bench, durations := range map[string]*[]time.Duration{
				fmt.Sprintf("^BenchmarkPolicy$/^%d$", n): &policy, fmt.Sprintf("^BenchmarkTranslate$/^OneTarget$/^%d$", n): &backends,
			} {
				ns, err := benchmark(ctx, "./extension/hooks", bench, "20x", `([0-9.]+) ns/op`)
				if err != nil {
					return rs, err
				}
				*durations = append(*durations, time.Duration(ns))
			}
		}
		rs = append(rs, paired(fmt.Sprintf("extension.policy_ratio_%d", n), policy, backends, maxPolicyRatio))
	}
	return rs, nil
}

// streamKB returns the cost of a stream in the server of endpoints, from the server's benchmark.
func streamKB(ctx context.Context) (float64, error) {
	return benchmark(ctx, "./extension/eds", "^BenchmarkStreams$", "1x", `([0-9.]+) stream_kb`)
}

// benchmark runs a benchmark of a package and returns the number that an expression finds in its
// output.
func benchmark(ctx context.Context, pkg, name, times, expression string) (float64, error) {
	root, err := apiserver.Root()
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-run=^$", "-bench="+name, "-benchtime="+times, pkg)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, errors.Wrapf(err, "cannot run %s: %s", name, bytes.TrimSpace(out))
	}
	m := regexp.MustCompile(expression).FindSubmatch(out)
	if m == nil {
		return 0, errors.Errorf("%s has no result: %s", name, bytes.TrimSpace(out))
	}
	v, err := strconv.ParseFloat(string(m[1]), 64)
	return v, errors.Wrapf(err, "cannot parse the result of %s", name)
}
