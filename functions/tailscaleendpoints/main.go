// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Command tailscaleendpoints is the composition function of TailscaleEndpoints:
// it composes proxies, their Machines in the tailnet, and the ProxySet that tells
// others of them. No secret passes through it.
package main

import (
	"github.com/alecthomas/kong"

	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
)

// CLI of this function.
type CLI struct {
	compose.Server

	EnvoyGatewayNamespaces []string `default:"envoy-gateway-system" env:"ENVOY_GATEWAY_NAMESPACES" help:"Namespaces in which Envoy Gateway runs, separated by commas. Its proxies and our extension there may connect to egress proxies whose networkPolicy names no clients."`
}

// Run this function.
func (c *CLI) Run() error {
	log, err := c.Logger()
	if err != nil {
		return err
	}
	return c.Serve(&Function{log: log, envoyGateway: c.EnvoyGatewayNamespaces})
}

func main() {
	ctx := kong.Parse(&CLI{},
		kong.Description("Composes TailscaleEndpoints: proxies and their machines in a tailnet."))
	ctx.FatalIfErrorf(ctx.Run())
}
