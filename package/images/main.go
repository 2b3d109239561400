// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Command images lists the images, packages and charts that an installation pulls, one on each line. It
// takes them from internal/products, as the builds and the default images of the binaries do.
//
//	go run ./package/images --version=v0.1.0 | package/mirror.sh registry.example.com
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
	"github.com/tailscale-gateway/tailscale-gateway/internal/version"
	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
)

type cli struct {
	Version   string `default:"${version}"    help:"Version of Tailscale Gateway: the tag of its images."`
	Flavour   string `default:"${namespaced}" enum:"${namespaced},${claims}" help:"Configuration to list: ${enum}."`
	Extension bool   `default:"true"          help:"List the extension of Envoy Gateway as well." negatable:""`
}

func main() {
	c := &cli{}
	k := kong.Parse(c,
		kong.Name("images"),
		kong.Description("List the images, packages and charts that an installation of Tailscale Gateway pulls."),
		kong.Vars{"version": version.Version, "namespaced": products.FlavourNamespaced, "claims": products.FlavourClaims})
	k.FatalIfErrorf(c.run())
}

func (c *cli) run() error {
	for _, image := range c.list() {
		if _, err := fmt.Fprintln(os.Stdout, image); err != nil {
			return errors.Wrap(err, "cannot print images")
		}
	}
	return nil
}

// list returns the packages, which Crossplane pulls and of which nodes pull the provider and the
// function as images, the images of proxies and of the extension, and the charts, which Helm pulls.
// The version of a chart has no v, because Helm requires a semantic version.
func (c *cli) list() []string {
	var out []string
	for _, p := range products.Packages(c.Flavour) {
		out = append(out, products.Image(p.Name, c.Version))
	}
	out = append(out, products.Image(products.Agent, c.Version), products.Tailscale)
	installed := []string{charts.Install}
	if c.Extension {
		out = append(out, products.Image(products.Extension, c.Version))
		installed = append(installed, charts.Extension)
	}
	for _, chart := range installed {
		out = append(out, products.Charts+"/"+chart+":"+strings.TrimPrefix(c.Version, "v"))
	}
	return out
}
