// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/sidebyside"
)

// goalFirst is within how many seconds the first Service of an empty namespace answers in the tailnet, in
// nine of ten cases.
const goalFirst = 8

// first measures what a new user waits for: the time from kubectl apply of a Service, its pods and a
// TailscaleServices, in an empty namespace, to the first answer in the tailnet. The images are on the
// node, and the controllers have done it before.
func (c *cli) first(ctx context.Context, lab *sidebyside.Lab) ([]Result, error) {
	ours := sidebyside.NewOurs(lab, "ours", c.Networking)
	if err := ours.InstallIngress(ctx); err != nil {
		return nil, err
	}
	var took []time.Duration
	for i := range c.Firsts + 1 {
		d, err := ours.First(ctx, fmt.Sprintf("first-%d", i))
		if err != nil {
			return nil, err
		}
		progress("first: %s", d)
		// The first one warms up.
		if i > 0 {
			took = append(took, d)
		}
	}
	progress("first: %s at the median, %s at most", median(took), slices.Max(took))
	return []Result{plain("first.answer_p90_s", percentile(took, 90).Seconds(), "s", goalFirst)}, nil
}
