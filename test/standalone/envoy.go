// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

// stub is what Envoy Gateway starts in place of Envoy: it tells the arguments, and lives
// on as Envoy would.
const stub = `#!/bin/sh
printf '%s\0' "$@" >'ARGS.tmp' && mv 'ARGS.tmp' 'ARGS'
exec sleep infinity
`

// An ownEnvoy is started with the arguments that Envoy Gateway made for one.
type ownEnvoy struct {
	program string
	// args is the file that the stub writes them to.
	args string
	log  io.Writer

	process *apiserver.Process
}

// putEnvoy where Envoy Gateway looks for it.
func (g *Gateway) putEnvoy(o Options, program, at string) error {
	if !o.OwnEnvoy {
		return os.Symlink(program, at)
	}
	g.proxy = &ownEnvoy{program: program, args: g.path("envoy-args"), log: o.Log}
	// A program must be executable.
	return os.WriteFile(at, []byte(strings.ReplaceAll(stub, "ARGS", g.proxy.args)), 0o700)
}

// StartEnvoy as Envoy Gateway would for the Gateway object, and wait until it serves.
// The Gateway object must be there.
func (g *Gateway) StartEnvoy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	var args []string
	err := wait(ctx, func(context.Context) error {
		b, err := os.ReadFile(g.proxy.args)
		args = strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
		return errors.Wrap(err, "Envoy Gateway has not asked for an Envoy")
	})
	if err != nil {
		return err
	}
	// Its own folder goes away with Envoy Gateway.
	admin := g.path("run", "own", "admin-address.txt")
	if err := os.MkdirAll(filepath.Dir(admin), 0o755); err != nil {
		return errors.Wrap(err, "cannot make Envoy's folder")
	}
	if err := os.Remove(admin); err != nil && !os.IsNotExist(err) {
		return errors.Wrap(err, "cannot remove Envoy's old address")
	}
	i := slices.Index(args, "--admin-address-path")
	if i < 0 || i+1 == len(args) {
		return errors.Errorf("cannot tell Envoy where to write its address: it is started with %v", args)
	}
	args[i+1] = admin
	if g.proxy.process, err = g.Run(g.proxy.log, g.proxy.program, args...); err != nil {
		return err
	}
	return errors.Wrap(wait(ctx, func(ctx context.Context) error {
		_, err := g.Admin(ctx, "/ready")
		return err
	}), "Envoy does not get ready")
}

// KillEnvoy that StartEnvoy started, without notice.
func (g *Gateway) KillEnvoy() error {
	if g.proxy == nil || g.proxy.process == nil {
		return nil
	}
	return g.proxy.process.Kill()
}

// wait until check returns no error, or ctx ends: then its last error is the result.
func wait(ctx context.Context, check func(context.Context) error) error {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}
