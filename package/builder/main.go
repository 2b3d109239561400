// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Command builder builds our Crossplane packages and our images without a container engine, pushes
// them to a registry, and releases them. It is a separate module, because the libraries for
// packages and registries bring the SDKs of several clouds, which no binary of ours needs. Run
// it with go -C package/builder run . COMMAND; paths are relative to the root of the repository.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"

	"github.com/alecthomas/kong"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

type cli struct {
	Build buildCmd `cmd:"" help:"Build every package and image into a folder."`
	Push  pushCmd  `cmd:"" help:"Push what build made to a registry."`

	Chart   chartCmd   `cmd:"" help:"Package the charts at a version."`
	Release releaseCmd `cmd:"" help:"Build everything, push it with SBOMs and provenance, and verify what the registry has."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	parser := kong.Must(&cli{},
		kong.Vars{"arch": runtime.GOARCH, "source": source},
		kong.Name("builder"),
		kong.Description("Build, push and release Tailscale Gateway's Crossplane packages, without a container engine."),
		kong.BindTo(ctx, (*context.Context)(nil)))
	parser.FatalIfErrorf(enterRoot())
	k, err := parser.Parse(os.Args[1:])
	parser.FatalIfErrorf(err)
	k.FatalIfErrorf(k.Run())
}

// enterRoot changes to the root of the repository: the next folder above that has packages.
func enterRoot() error {
	dir, err := os.Getwd()
	if err != nil {
		return errors.Wrap(err, "cannot find the working directory")
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "package", "provider", "crossplane.yaml")); err == nil {
			return errors.Wrap(os.Chdir(dir), "cannot change to the root of the repository")
		}
		if filepath.Dir(dir) == dir {
			return errors.New("run the builder in the repository of Tailscale Gateway")
		}
		dir = filepath.Dir(dir)
	}
}
