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
	"github.com/tailscale-gateway/tailscale-gateway/internal/version"
)

// CLI of this function.
type CLI struct {
	compose.Server

	EnvoyGatewayNamespaces []string `default:"envoy-gateway-system" env:"ENVOY_GATEWAY_NAMESPACES" help:"Namespaces in which Envoy Gateway runs, separated by commas. A Gateway's Service is taken from there, or from the Gateway's own namespace."`

	ExtensionImage string `default:"${extension_image}" env:"EXTENSION_IMAGE" help:"Image of the extensions of TailscaleGateways that want one of their own and name none."`
}

// Run this function.
func (c *CLI) Run() error {
	log, err := c.Logger()
	if err != nil {
		return err
	}
	return c.Serve(&Function{log: log, extensionImage: c.ExtensionImage, envoyGateway: c.EnvoyGatewayNamespaces})
}

func main() {
	ctx := kong.Parse(&CLI{},
		kong.Description("Composes TailscaleGateways: joins Gateways to tailnets."),
		kong.Vars{"extension_image": "ghcr.io/tailscale-gateway/extension:" + version.Version})
	ctx.FatalIfErrorf(ctx.Run())
}
