// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Command tailscalegateway is the composition function of TailscaleGateway: it
// finds the Service that Envoy Gateway made in front of a Gateway, and tells which
// listeners it serves. For each tailnet it composes TailscaleEndpoints, and
// TailscaleServices for what the tailnet is to reach. What those are made of is their
// functions' to say; which routes there are, the extension reports.
package main

import (
	"github.com/alecthomas/kong"

	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
)

// CLI of this function.
type CLI struct {
	compose.Server
}

// Run this function.
func (c *CLI) Run() error {
	log, err := c.Logger()
	if err != nil {
		return err
	}
	return c.Serve(&Function{log: log})
}

func main() {
	ctx := kong.Parse(&CLI{}, kong.Description("Composes TailscaleGateways: joins Gateways to tailnets."))
	ctx.FatalIfErrorf(ctx.Run())
}
