// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tailscale-gateway/tailscale-gateway/extension/serve"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

// certificates of both servers. Each may be nil: then there is no TLS.
type certificates struct {
	hooks, eds *serve.Certificate

	// roots that Envoys check the endpoint server with. They are read once: they
	// are part of every cluster, and it is for a rollout to change all of them.
	roots []byte
}

func newCertificates(c *CLI) (*certificates, error) {
	out := &certificates{}
	var err error
	if c.HooksTLS != "" {
		if out.hooks, err = serve.NewCertificate(c.HooksTLS, c.HooksClientCA); err != nil {
			return nil, err
		}
	}
	if c.EDSTLS == "" {
		return out, nil
	}
	if out.eds, err = serve.NewCertificate(c.EDSTLS, c.EDSClientCA); err != nil {
		return nil, err
	}
	out.roots, err = out.eds.Roots()
	return out, err
}

// expiry of each certificate, by the server that shows it.
func (c *certificates) expiry() map[string]func() (time.Time, error) {
	out := map[string]func() (time.Time, error){}
	for name, of := range map[string]*serve.Certificate{"hooks": c.hooks, "eds": c.eds} {
		if of != nil {
			out[name] = of.NotAfter
		}
	}
	return out
}

// run watches the files until ctx ends.
func (c *certificates) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, of := range []*serve.Certificate{c.hooks, c.eds} {
		if of != nil {
			g.Go(func() error { return of.Run(ctx) })
		}
	}
	return g.Wait()
}

// source that clusters get their endpoints from.
func (c *certificates) source(cli *CLI) (xds.Source, error) {
	if cli.XDSMode == modeXDSTP {
		return xds.XDSTP(), nil
	}
	target, err := dialTarget(cli.EDSTarget)
	return xds.GoogleGRPC(target, cli.EDSServer, c.roots), err
}
