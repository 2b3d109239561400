// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/sidebyside"
)

const (
	// bulkServices is the number of services that are created at once.
	bulkServices = 100

	// maxBulk is how long all may take to answer on two cores, in seconds, and maxBulkRatio compares that with
	// Tailscale's operator.
	maxBulk      = 30
	maxBulkRatio = 0.2
)

// bulk measures how long many services that are created at once take until all answer a client of the
// tailnet, with us and with Tailscale's operator, one after the other.
func (c *cli) bulk(ctx context.Context, lab *sidebyside.Lab) ([]Result, error) {
	ours, theirs := sidebyside.NewOurs(lab, "ours", c.Networking), sidebyside.NewTheirs(lab)
	took := map[string]float64{}
	for _, s := range []sidebyside.Side{ours, theirs} {
		progress("bulk: installing the proxies of %s", s.Name())
		if err := s.Install(ctx); err != nil {
			return nil, err
		}
		// A first service lets clients and proxies find their paths.
		if _, err := lab.Ingress(ctx, s, service(s, 0)); err != nil {
			return nil, err
		}
		var names []string
		for i := range bulkServices {
			names = append(names, fmt.Sprintf("%s-bulk-%d", s.Name(), i))
		}
		d, err := lab.IngressAll(ctx, s, names)
		if err != nil {
			return nil, err
		}
		progress("bulk: %d services of %s answer after %s", bulkServices, s.Name(), d)
		took[s.Name()] = d.Seconds()
	}
	return []Result{
		plain("scale.bulk100_ready_s", took[ours.Name()], "s", maxBulk),
		compared("scale.bulk100_ready_ratio", took[ours.Name()], took[theirs.Name()], "s", maxBulkRatio),
	}, nil
}
