// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Command tailscaletailnet is the composition function of TailscaleTailnet: it
// composes the provider config of a tailnet and the managed resource that
// observes it. It never sees a credential.
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
	ctx := kong.Parse(&CLI{}, kong.Description("Composes TailscaleTailnets: provider configs and observed tailnets."))
	ctx.FatalIfErrorf(ctx.Run())
}
