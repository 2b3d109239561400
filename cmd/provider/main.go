// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// The provider manages Tailscale's objects as Crossplane managed resources. This
// package reads flags; internal/provider runs it.
package main

import (
	"os"
	"runtime/debug"

	"github.com/alecthomas/kong"
	_ "golang.org/x/crypto/x509roots/fallback" // The image holds no certificates: these serve where the system has none.
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
	"github.com/tailscale-gateway/tailscale-gateway/internal/provider"
	"github.com/tailscale-gateway/tailscale-gateway/internal/version"
)

const description = `Manages Tailscale Services, devices, keys, DNS and tailnets as Crossplane managed resources.

Each flag may be given as the environment variable that its help names. In a cluster, set flags with a
DeploymentRuntimeConfig that the provider's package refers to.

How often Tailscale's API is asked follows from --poll, --list-max-age and --api-rate: all resources of a
tailnet share one list of services and one of devices, so more resources cost no more calls.`

// gcPercent is half of Go's default: what a provider keeps is little beside what
// decoding lists and objects leaves behind, so its peak is what counts.
const gcPercent = 50

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	f := &flags{}
	k := kong.Parse(f,
		kong.Name("provider"),
		kong.Description(description),
		variables(),
		kong.UsageOnError(),
	)
	k.FatalIfErrorf(provider.Run(ctrl.SetupSignalHandler(), f.options()))
}

// variables returns the values that help texts and defaults of flags name.
func variables() kong.Vars {
	return kong.Vars{"version": version.Version, "registry": products.Organization, "tailscale_image": products.Tailscale}
}
