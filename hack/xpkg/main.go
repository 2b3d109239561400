// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Command xpkg builds our Crossplane packages and our images without a container
// engine, and pushes them to a registry.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime"

	"github.com/alecthomas/kong"
)

type cli struct {
	Build buildCmd `cmd:"" help:"Build every package and image into a folder."`
	Push  pushCmd  `cmd:"" help:"Push what build made to a registry."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	k := kong.Parse(&cli{},
		kong.Vars{"arch": runtime.GOARCH},
		kong.Name("xpkg"),
		kong.Description("Build and push Tailscale Gateway's Crossplane packages, without a container engine."),
		kong.BindTo(ctx, (*context.Context)(nil)))
	k.FatalIfErrorf(k.Run())
}
