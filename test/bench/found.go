// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/gateway"
)

// foundServices is the number of services for which routes are generated.
const foundServices = 500

// gateway measures the cost of generated routes only.
func (c *cli) gateway(ctx context.Context) ([]Result, error) {
	return withExtension(ctx, func(bin string) ([]Result, error) { return c.found(ctx, bin) })
}

// found compares generated routes for the services of a tailnet with the same routes on the same
// Services, written by hand, with an extension that does nothing. Both environments run at once and
// take turns.
func (c *cli) found(ctx context.Context, bin string) ([]Result, error) {
	var rs []Result
	options := gateway.Options{Routes: foundServices, Targets: foundServices, Found: true, Plain: true, Echo: true}
	return rs, c.inEnvironment(ctx, bin, options, func(hand *gateway.Environment) error {
		options.Plain, options.Echo = false, false
		return c.inEnvironment(ctx, bin, options, func(w *gateway.Environment) error {
			var ours, theirs []time.Duration
			for range turns {
				took, err := w.Translations(ctx, translationsEach)
				if err != nil {
					return err
				}
				ours = append(ours, took...)
				if took, err = hand.Translations(ctx, translationsEach); err != nil {
					return err
				}
				theirs = append(theirs, took...)
			}
			progress("gateway: translations took %s, of routes written by hand %s", ours, theirs)
			rs = append(rs, paired("gateway.discovered500_translate_ratio", ours, theirs, maxTranslateRatio))
			memory, err := w.EnvoyMemory(ctx)
			if err != nil {
				return err
			}
			baseline, err := hand.EnvoyMemory(ctx)
			if err != nil {
				return err
			}
			rs = append(rs, compared("gateway.discovered500_envoy_memory_ratio", memory, baseline, "MiB", maxTranslateRatio))
			resident, err := w.ExtensionMemory(ctx)
			rs = append(rs, plain("gateway.discovered500_rss_mb", resident, "MB", maxResident))
			return err
		})
	})
}
