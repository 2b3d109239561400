// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Command tailscaleservices is the composition function of TailscaleServices: it
// composes a Tailscale Service, tells the selected proxies what to serve for it,
// and makes proxies from a template where none match.
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
	ctx := kong.Parse(&CLI{}, kong.Description("Composes TailscaleServices: Tailscale Services and what proxies serve for them."))
	ctx.FatalIfErrorf(ctx.Run())
}
