// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// The provider manages Tailscale's objects as Crossplane managed resources. This
// package reads flags and wires the manager; controllers live in
// internal/controller.
package main

import (
	"github.com/alecthomas/kong"
	_ "golang.org/x/crypto/x509roots/fallback" // The image holds no certificates: these serve where the system has none.
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/tailscale-gateway/tailscale-gateway/internal/version"
)

func main() {
	o := &options{}
	k := kong.Parse(o,
		kong.Name("provider"),
		kong.Description("Manages Tailscale Services, machines and tailnets as Crossplane managed resources. All flags may be given as environment variables."),
		kong.Vars{"version": version.Version},
		kong.UsageOnError(),
	)
	k.FatalIfErrorf(run(ctrl.SetupSignalHandler(), o))
}
