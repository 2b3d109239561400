// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// The provider manages Tailscale's objects as Crossplane managed resources. This
// package reads flags; internal/provider runs it.
package main

import (
	"os"
	"runtime/debug"

	_ "golang.org/x/crypto/x509roots/fallback" // The image holds no certificates: these serve where the system has none.
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/tailscale-gateway/tailscale-gateway/internal/flags"
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

// program returns the provider's command line.
func program() flags.Program {
	return flags.Program{
		Name: "provider", Description: description, Version: version.Version,
		Vars:     map[string]string{"registry": products.Organization, "tailscale_image": products.Tailscale},
		Commands: []flags.Command{{Flags: &runCmd{}}},
	}
}

// Run runs the provider until it gets a signal to terminate.
func (c *runCmd) Run() error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	return provider.Run(ctrl.SetupSignalHandler(), c.options())
}

func main() { program().Main() }
