// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/extension/credentials"
	"github.com/tailscale-gateway/tailscale-gateway/extension/serve"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

// toldInterval is how often files are read that Envoys are told the contents of.
const toldInterval = 10 * time.Second

// certificates of both servers, and of their clients.
type certificates struct {
	// hooks and eds are what each server shows. Without them there is no TLS.
	hooks, eds serve.Shower

	// Whom they answer. Nil is anybody.
	hooksClients, edsClients *serve.Clients

	// watched are the files of those that are files.
	watched []*serve.Certificate

	// keeper of those that are made. May be nil.
	keeper *credentials.Keeper

	// told reads what Envoys are told: it is part of every cluster.
	told func() (xds.TLS, error)

	// source is where clusters get their endpoints from that say so themselves.
	source atomic.Pointer[xds.Source]

	target, server string
	mode           string
	log            logging.Logger
}

// newCertificates reads those that are given, and makes those that are not, where they are
// to be made.
func newCertificates(ctx context.Context, c *CLI, log logging.Logger) (*certificates, error) {
	target, err := dialTarget(c.EDSTarget)
	if err != nil {
		return nil, err
	}
	out := &certificates{target: target, server: c.EDSServer, mode: c.XDSMode, log: log}
	if c.MakeCertificates != "" {
		if out.keeper, err = startKeeper(ctx, c, log); err != nil {
			return nil, err
		}
	}
	if out.hooks, err = out.shower(c.HooksTLS); err != nil {
		return nil, err
	}
	if out.eds, err = out.shower(c.EDSTLS); err != nil {
		return nil, err
	}
	if out.hooksClients, err = out.clients(c.HooksClientCA, c.HooksClientName, (*credentials.Keeper).ClientName); err != nil {
		return nil, err
	}
	if out.edsClients, err = out.clients(c.EDSClientCA, c.EDSClientName, (*credentials.Keeper).EnvoyName); err != nil {
		return nil, err
	}
	out.told = out.telling(c.EDSTLS, c.EDSClientTLS)
	t, err := out.told()
	if err != nil {
		return nil, err
	}
	out.tell(t)
	return out, nil
}

func startKeeper(ctx context.Context, c *CLI, log logging.Logger) (*credentials.Keeper, error) {
	cfg, err := restConfig(c.Kubeconfig)
	if err != nil {
		return nil, err
	}
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, errors.Wrap(err, "cannot make a client of the Kubernetes API")
	}
	k := credentials.NewKeeper(kube, c.Namespace, c.MakeCertificates, log)
	return k, k.Start(ctx)
}

// shower of what a folder has, or of what is made. Nil if it is neither.
func (c *certificates) shower(dir string) (serve.Shower, error) {
	switch {
	case dir != "":
		of, err := serve.NewCertificate(dir)
		if err != nil {
			return nil, err
		}
		c.watched = append(c.watched, of)
		return of.Show, nil
	case c.keeper != nil:
		return c.keeper.Show, nil
	}
	return nil, nil
}

// clients whose certificates chain to what a file has, or to what is made. Nil if it is
// neither.
func (c *certificates) clients(file, name string, made func(*credentials.Keeper) string) (*serve.Clients, error) {
	switch {
	case file != "":
		return serve.ClientsOf(file, name)
	case c.keeper != nil:
		return &serve.Clients{CA: c.keeper.CA, Name: made(c.keeper)}, nil
	}
	return nil, nil
}

// telling returns what reads what Envoys are told.
func (c *certificates) telling(serverDir, clientDir string) func() (xds.TLS, error) {
	return func() (out xds.TLS, err error) {
		switch {
		case serverDir != "":
			out.Roots, err = serve.ReadRoots(serverDir)
		case c.keeper != nil:
			out.Roots, err = c.keeper.CA()
		}
		if err != nil {
			return xds.TLS{}, err
		}
		switch {
		case clientDir != "":
			out.Cert, out.Key, err = serve.ReadPair(clientDir)
		case c.keeper != nil:
			p := c.keeper.Envoy()
			out.Cert, out.Key = p.Cert, p.Key
		}
		return out, err
	}
}

// tell Envoys from now on.
func (c *certificates) tell(t xds.TLS) {
	s := xds.GoogleGRPC(c.target, c.server, t)
	c.source.Store(&s)
}

// Source that clusters get their endpoints from, as it is now, in Envoys whose bootstrap has
// the authority tailscale or not.
func (c *certificates) Source(bootstrapped bool) xds.Source {
	if c.mode == modeXDSTP || c.mode == modeAuto && bootstrapped {
		return xds.XDSTP()
	}
	return *c.source.Load()
}

// expiry of each certificate, by the server that shows it.
func (c *certificates) expiry() map[string]func() (time.Time, error) {
	out := map[string]func() (time.Time, error){}
	for name, of := range map[string]serve.Shower{"hooks": c.hooks, "eds": c.eds} {
		if of != nil {
			out[name] = of.NotAfter
		}
	}
	return out
}

// run until ctx ends: certificates that are renewed are shown, and clusters are to be made
// again when Envoys are to be told others.
func (c *certificates) run(ctx context.Context, again func()) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, of := range c.watched {
		g.Go(func() error { return of.Run(ctx) })
	}
	if c.keeper != nil {
		g.Go(func() error { return c.keeper.Run(ctx, func() {}) })
	}
	g.Go(func() error {
		c.follow(ctx, again)
		return nil
	})
	return g.Wait()
}

// follow what Envoys are to be told, until ctx ends.
func (c *certificates) follow(ctx context.Context, again func()) {
	last, err := c.told()
	if err != nil {
		c.log.Info("Cannot read certificates that Envoys are told", "error", err)
	}
	tick := time.NewTicker(toldInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, err := c.told()
		if err != nil {
			c.log.Info("Cannot read certificates that Envoys are told; they keep those before", "error", err)
			continue
		}
		if bytes.Equal(now.Roots, last.Roots) && bytes.Equal(now.Cert, last.Cert) {
			continue
		}
		last = now
		c.tell(now)
		c.log.Info("Envoys are to have other certificates; Envoy Gateway will be had to ask again")
		again()
	}
}
