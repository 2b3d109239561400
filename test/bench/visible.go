// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/sidebyside"
)

// maxVisible is how many seconds a new route may take to answer in the tailnet, and a deleted one
// to stop.
const maxVisible = 5

// visible measures how soon a new route of a shared Gateway answers a client of the tailnet, and
// how soon a deleted one stops, with real Envoy Gateway, real Envoy, and real tailscaled on both
// sides.
func (c *cli) visible(ctx context.Context, lab *sidebyside.Lab) ([]Result, error) {
	ours := sidebyside.NewOurs(lab, "ours", c.Networking)
	if err := ours.Install(ctx); err != nil {
		return nil, err
	}
	if err := ours.InstallGateways(ctx); err != nil {
		return nil, err
	}
	var out []Result
	for _, variant := range []struct {
		sharing sidebyside.Sharing
		name    string
		routes  int
	}{
		{sharing: sidebyside.SharedGateway, name: "gateway.route", routes: c.Visible},
		{sharing: sidebyside.SharedRoutes, name: "gateway.route_service", routes: c.OwnServices},
	} {
		progress("visible: sharing a Gateway, routeSharing %s", variant.sharing)
		if err := ours.Share(ctx, variant.sharing); err != nil {
			return out, err
		}
		progress("visible: %d routes", variant.routes)
		changes, err := ours.Changes(ctx, variant.sharing, variant.routes)
		if err != nil {
			return out, err
		}
		var visible, removed []time.Duration
		for _, ch := range changes {
			visible, removed = append(visible, ch.Visible), append(removed, ch.Removed)
		}
		progress("visible: %s at the median, %s at most", median(visible), slices.Max(visible))
		progress("gone: %s at the median, %s at most", median(removed), slices.Max(removed))
		out = append(out,
			plain(variant.name+"_visible_p99_s", percentile(visible, 99).Seconds(), "s", maxVisible),
			plain(variant.name+"_gone_p99_s", percentile(removed, 99).Seconds(), "s", maxVisible))
	}
	return out, nil
}
