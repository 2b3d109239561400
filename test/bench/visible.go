// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"

	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/sidebyside"
)

// maxVisible is how long a route may take until it answers in the tailnet, in seconds.
const maxVisible = 5

// visible measures how soon a new route of a shared Gateway answers a client of the
// tailnet: real Envoy Gateway, real Envoy, and real tailscaled on both sides.
func (c *cli) visible(ctx context.Context, lab *sidebyside.Lab) ([]Result, error) {
	ours := sidebyside.NewOurs(lab, "ours", c.Networking)
	if err := ours.Install(ctx); err != nil {
		return nil, err
	}
	progress("visible: sharing a Gateway")
	if err := ours.ShareGateway(ctx); err != nil {
		return nil, err
	}
	progress("visible: %d routes", c.Visible)
	took, err := ours.Visible(ctx, c.Visible)
	if err != nil {
		return nil, err
	}
	progress("visible: %s at the median, %s at most", median(took), slices.Max(took))
	return []Result{plain("gateway.route_visible_p99_s", percentile(took, 99).Seconds(), "s", maxVisible)}, nil
}
