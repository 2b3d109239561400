// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Command tailscaleendpoints is the composition function of TailscaleEndpoints:
// it composes proxies, their Machines in the tailnet, and the ProxySet that tells
// others of them. No secret passes through it.
package main

import (
	"github.com/alecthomas/kong"

	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/version"
)

// CLI of this function.
type CLI struct {
	compose.Server

	TailscaleImage string `default:"docker.io/tailscale/tailscale:v1.102.5" env:"TAILSCALE_IMAGE" help:"Image of tailscaled, with containerboot, of proxies that name none."`
	AgentImage     string `default:"${agent_image}"                         env:"AGENT_IMAGE"     help:"Image of the agent of all proxies."`
}

// Run this function.
func (c *CLI) Run() error {
	log, err := c.Logger()
	if err != nil {
		return err
	}
	return c.Serve(&Function{log: log, images: images{tailscale: c.TailscaleImage, agent: c.AgentImage}})
}

func main() {
	ctx := kong.Parse(&CLI{},
		kong.Description("Composes TailscaleEndpoints: proxies and their machines in a tailnet."),
		kong.Vars{"agent_image": "ghcr.io/tailscale-gateway/agent:" + version.Version})
	ctx.FatalIfErrorf(ctx.Run())
}
