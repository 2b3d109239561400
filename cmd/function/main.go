// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Command function serves the composition functions of all our kinds to Crossplane.
package main

import (
	"cmp"

	"github.com/tailscale-gateway/tailscale-gateway/functions"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/flags"
	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
	"github.com/tailscale-gateway/tailscale-gateway/internal/version"
)

const description = `Composes TailscaleTailnets, TailscaleEndpoints, TailscaleServices, TailscaleProxyGroups and TailscaleGateways.

A step without an input composes its composite. In the pipeline of any other composite the input says what to compose: its kind is one of TailscaleTailnetInput, TailscaleEndpointsInput, TailscaleServicesInput, TailscaleProxyGroupInput and TailscaleGatewayInput.`

// CLI of the function.
type CLI struct {
	compose.Server

	EnvoyGatewayNamespaces []string `default:"envoy-gateway-system" help:"Namespaces in which Envoy Gateway runs, separated by commas. A Gateway's Service must be in one of them, or in the Gateway's namespace. The Envoy proxies and the extension in them may connect to egress proxies whose networkPolicy names no clients."`

	ExtensionImage string `help:"Image of dedicated extensions of TailscaleGateways that set no image. The default is the extension of this version in --image-registry; a release names it by digest." placeholder:"IMAGE"`
	ImageRegistry  string `default:"${registry}" help:"Registry and path of the extension's image, unless --extension-image names it." placeholder:"REGISTRY"`
}

// Run runs the function.
func (c *CLI) Run() error {
	log, err := c.Logger()
	if err != nil {
		return err
	}
	return c.Serve(functions.New(log, functions.Options{EnvoyGatewayNamespaces: c.EnvoyGatewayNamespaces, ExtensionImage: c.extensionImage()}))
}

// extensionImage returns the image of dedicated extensions that set none.
func (c *CLI) extensionImage() string {
	return cmp.Or(c.ExtensionImage, products.Belonging(c.ImageRegistry, products.Extension, version.Version))
}

func main() {
	flags.Program{
		Name: "function", Description: description, Version: version.Version,
		Vars:     map[string]string{"registry": products.Organization},
		Commands: []flags.Command{{Flags: &CLI{}}},
	}.Main()
}
