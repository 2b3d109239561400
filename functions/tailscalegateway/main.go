// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Command tailscalegateway is the composition function of TailscaleGateway: it
// finds the Service that Envoy Gateway made in front of a Gateway, and tells which
// listeners it serves. It composes nothing: what is published of a Gateway is a
// TailscaleServices' to say.
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
	ctx := kong.Parse(&CLI{}, kong.Description("Composes TailscaleGateways: finds the Services in front of Gateways."))
	ctx.FatalIfErrorf(ctx.Run())
}
