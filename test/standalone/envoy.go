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

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
	"github.com/tailscale-gateway/tailscale-gateway/test/retry"
)

// stub is the program that Envoy Gateway starts in place of Envoy: it writes its arguments, and
// runs until it is stopped.
const stub = `#!/bin/sh
printf '%s\0' "$@" >'ARGS.tmp' && mv 'ARGS.tmp' 'ARGS'
exec sleep infinity
`

// An ownEnvoy is started with the arguments that Envoy Gateway built for an Envoy.
type ownEnvoy struct {
	program string
	// args is the file to which the stub writes them.
	args string
	log  io.Writer

	process *apiserver.Process
}

// putEnvoy puts a program into the place where Envoy Gateway looks for Envoy.
func (g *Gateway) putEnvoy(o Options, program, path string) error {
	if !o.OwnEnvoy {
		return os.Symlink(program, path)
	}
	g.proxy = &ownEnvoy{program: program, args: g.path("envoy-args"), log: o.Log}
	// A program must be executable.
	return os.WriteFile(path, []byte(strings.ReplaceAll(stub, "ARGS", g.proxy.args)), 0o700)
}

// StartEnvoy starts Envoy as Envoy Gateway would for the Gateway object, and waits until it serves.
// The Gateway object must exist.
func (g *Gateway) StartEnvoy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	var args []string
	err := retry.Until(ctx, poll, func(context.Context) error {
		b, err := os.ReadFile(g.proxy.args)
		args = strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
		return errors.Wrap(err, "Envoy Gateway has not started an Envoy")
	})
	if err != nil {
		return err
	}
	// Envoy Gateway deletes its own folder when it ends.
	admin := g.path("run", "own", "admin-address.txt")
	if err := os.MkdirAll(filepath.Dir(admin), 0o755); err != nil {
		return errors.Wrap(err, "cannot create Envoy's folder")
	}
	if err := os.Remove(admin); err != nil && !os.IsNotExist(err) {
		return errors.Wrap(err, "cannot remove Envoy's old address")
	}
	i := slices.Index(args, "--admin-address-path")
	if i < 0 || i+1 == len(args) {
		return errors.Errorf("cannot find the path of Envoy's address in its arguments: %v", args)
	}
	args[i+1] = admin
	if g.proxy.process, err = g.Run(g.proxy.log, g.proxy.program, args...); err != nil {
		return err
	}
	return errors.Wrap(retry.Until(ctx, poll, func(ctx context.Context) error {
		_, err := g.Admin(ctx, "/ready")
		return err
	}), "Envoy does not become ready")
}

// KillEnvoy kills the Envoy that StartEnvoy started.
func (g *Gateway) KillEnvoy() error {
	if g.proxy == nil || g.proxy.process == nil {
		return nil
	}
	return g.proxy.process.Kill()
}

// Processes returns Envoy Gateway and the Envoy that StartEnvoy started, which a test may signal.
func (g *Gateway) Processes() []*apiserver.Process {
	out := []*apiserver.Process{g.process}
	if g.proxy != nil && g.proxy.process != nil {
		out = append(out, g.proxy.process)
	}
	return out
}
