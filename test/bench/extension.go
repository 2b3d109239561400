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

// Goals, and sizes that they are for.
const (
	fewRoutes  = 1000
	manyRoutes = 5000

	// sides take turns so often, each with so many translations.
	turns            = 5
	translationsEach = 3

	// updateSamples are changes over which the index is measured.
	updateSamples = 50

	maxTranslateRatio = 1.5
	maxSharedMemory   = 1
	maxDistinctMemory = 2.2
	maxLive           = 100 // ms
	maxUpdate         = 5   // ms
	maxResident       = 150 // MB

	// maxStream is what a stream cost in the library's server that ours replaces, in kB.
	maxStream = 230
)

// extension measures Envoy Gateway and Envoy with our extension, beside the same
// routes on plain Services and beside an extension that does nothing.
func (c *cli) extension(ctx context.Context) ([]Result, error) {
	return withExtension(ctx, func(bin string) ([]Result, error) { return c.withRoutes(ctx, bin) })
}

// withExtension built in a folder, do something.
func withExtension(ctx context.Context, do func(bin string) ([]Result, error)) ([]Result, error) {
	bin, err := os.MkdirTemp("", "tailscale-gateway-bench-")
	if err != nil {
		return nil, errors.Wrap(err, "cannot make a folder for programs")
	}
	defer os.RemoveAll(bin)
	progress("extension: building")
	if err := harness.Build(ctx, bin, "./extension"); err != nil {
		return nil, err
	}
	return do(bin)
}

// withRoutes says what many routes cost.
func (c *cli) withRoutes(ctx context.Context, bin string) ([]Result, error) {
	var rs []Result
	var errs []error
	for _, distinct := range []bool{false, true} {
		few, err := c.fewRoutes(ctx, bin, distinct)
		many, failed := c.manyRoutes(ctx, bin, distinct)
		rs = append(append(rs, few...), many...)
		errs = append(errs, err, failed)
	}
	found, err := c.found(ctx, bin)
	rs, errs = append(rs, found...), append(errs, err)
	kb, err := streamKB(ctx)
	if err == nil {
		rs = append(rs, plain("extension.stream_kb", kb, "kB", maxStream))
	}
	return rs, errors.Join(append(errs, err)...)
}

// fewRoutes says what they cost Envoy and Envoy Gateway.
func (c *cli) fewRoutes(ctx context.Context, bin string, distinct bool) ([]Result, error) {
	baseline := 0.0
	err := c.inWorld(ctx, bin, gateway.Options{Routes: fewRoutes, Distinct: distinct, Plain: true}, func(w *gateway.World) error {
		var err error
		baseline, err = w.EnvoyMemory(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	var rs []Result
	return rs, c.inWorld(ctx, bin, gateway.Options{Routes: fewRoutes, Distinct: distinct}, func(w *gateway.World) error {
		memory, err := w.EnvoyMemory(ctx)
		if err != nil {
			return err
		}
		name, goal := "extension.envoy_memory_ratio_1000", float64(maxSharedMemory)
		if distinct {
			name, goal = "extension.envoy_memory_ratio_distinct", maxDistinctMemory
		}
		rs = append(rs, compared(name, memory, baseline, "MiB", goal))
		r, err := translateRatio(ctx, w, translateName(fewRoutes, distinct))
		rs = append(rs, r...)
		return err
	})
}

// manyRoutes says what they cost us, too.
func (c *cli) manyRoutes(ctx context.Context, bin string, distinct bool) ([]Result, error) {
	var rs []Result
	return rs, c.inWorld(ctx, bin, gateway.Options{Routes: manyRoutes, Distinct: distinct}, func(w *gateway.World) error {
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
		r, err := translateRatio(ctx, w, translateName(manyRoutes, distinct))
		rs = append(rs, r...)
		return err
	})
}

// live says how soon endpoints serve, and what the extension has taken by then.
func (c *cli) live(ctx context.Context, w *gateway.World) ([]Result, error) {
	took, err := w.Live(ctx, c.Changes)
	if err != nil {
		return nil, err
	}
	progress("extension: endpoints served after %s at the median, %s at most", median(took), slices.Max(took))
	memory, err := w.ExtensionMemory()
	return []Result{
		plain("extension.endpoint_live_p99_ms", milliseconds(percentile(took, 99)), "ms", maxLive),
		plain("extension.rss_mb", memory, "MB", maxResident),
	}, err
}

func translateName(routes int, distinct bool) string {
	if distinct {
		return fmt.Sprintf("extension.translate_ratio_distinct_%d", routes)
	}
	return fmt.Sprintf("extension.translate_ratio_%d", routes)
}

// inWorld does something in a world of its own.
func (c *cli) inWorld(ctx context.Context, bin string, o gateway.Options, do func(w *gateway.World) error) error {
	progress("extension: %d routes, distinct targets %t, plain Services %t; %s", o.Routes, o.Distinct, o.Plain, load())
	w, err := gateway.Start(ctx, o, filepath.Join(bin, "extension"), filepath.Join(c.Logs, "extension"))
	if err != nil {
		return err
	}
	return errors.Join(do(w), w.Stop())
}

// translateRatio of the extension, which runs, and of one that does nothing. Both take
// turns, so that what else the machine does meets both.
func translateRatio(ctx context.Context, w *gateway.World, name string) ([]Result, error) {
	var ours, nothing []time.Duration
	for turn := range turns {
		if turn > 0 {
			if err := w.StartExtension(ctx); err != nil {
				return nil, err
			}
		}
		took, err := w.Translations(ctx, translationsEach)
		if err != nil {
			return nil, err
		}
		ours = append(ours, took...)
		if err := w.StartEcho(ctx); err != nil {
			return nil, err
		}
		if took, err = w.Translations(ctx, translationsEach); err != nil {
			return nil, err
		}
		nothing = append(nothing, took...)
	}
	progress("extension: translations took %s, with one that does nothing %s", ours, nothing)
	return []Result{paired(name, ours, nothing, maxTranslateRatio)}, nil
}

// streamKB is what a stream costs the server of endpoints, as its own benchmark tells.
func streamKB(ctx context.Context) (float64, error) {
	root, err := apiserver.Root()
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-run=^$", "-bench=^BenchmarkStreams$", "-benchtime=1x", "./extension/eds")
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, errors.Wrapf(err, "cannot measure streams: %s", bytes.TrimSpace(out))
	}
	m := regexp.MustCompile(`([0-9.]+) stream_kb`).FindSubmatch(out)
	if m == nil {
		return 0, errors.Errorf("the benchmark of streams tells nothing: %s", bytes.TrimSpace(out))
	}
	kb, err := strconv.ParseFloat(string(m[1]), 64)
	return kb, errors.Wrap(err, "cannot read what a stream costs")
}
