// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Command tailscaleproxygroup is the composition function of TailscaleProxyGroup:
// it composes a TailscaleEndpoints for each tailnet and zone, and sums up their
// devices. What proxies are made of is the function of TailscaleEndpoints' to say.
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
	ctx := kong.Parse(&CLI{}, kong.Description("Composes TailscaleProxyGroups: TailscaleEndpoints over tailnets and zones."))
	ctx.FatalIfErrorf(ctx.Run())
}
