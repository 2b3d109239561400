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

// readInterval is the interval at which the extension reads the certificate files whose contents it
// sends to Envoys.
const readInterval = 10 * time.Second

// writeLimit is the time for requests of --write-certificates. Its Job starts another pod after a
// failure.
const writeLimit = time.Minute

// certificates holds the certificates of both servers, and of their clients.
type certificates struct {
	// hooks and eds are the certificates of the servers. Nil means no TLS.
	hooks, eds serve.CertificateFn

	// Clients that the servers answer. Nil means any client.
	hooksClients, edsClients *serve.Clients

	// watched are the certificates that are files.
	watched []*serve.Certificate

	// keeper of generated certificates. May be nil.
	keeper *credentials.Keeper

	// envoyTLS reads the certificates that each cluster sends to Envoys.
	envoyTLS func() (xds.TLS, error)

	// source of endpoints in clusters that name the extension's address.
	source atomic.Pointer[xds.Source]

	target, server string
	mode           string
	log            logging.Logger
}

// newCertificates reads the certificates that flags name, and generates the others if the flags
// request that.
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
	if out.hooks, err = out.serverCertificate(c.HooksTLS); err != nil {
		return nil, err
	}
	if out.eds, err = out.serverCertificate(c.EDSTLS); err != nil {
		return nil, err
	}
	if out.hooksClients, err = out.clients(c.HooksClientCA, c.HooksClientName, (*credentials.Keeper).ClientName); err != nil {
		return nil, err
	}
	if out.edsClients, err = out.clients(c.EDSClientCA, c.EDSClientName, (*credentials.Keeper).EnvoyName); err != nil {
		return nil, err
	}
	out.envoyTLS = out.envoyTLSReader(c.EDSTLS, c.EDSClientTLS)
	t, err := out.envoyTLS()
	if err != nil {
		return nil, err
	}
	out.setEnvoyTLS(t)
	return out, nil
}

// kubeClient returns a client of the Kubernetes API.
func kubeClient(c *CLI) (kubernetes.Interface, error) {
	cfg, err := restConfig(c.Kubeconfig)
	if err != nil {
		return nil, err
	}
	kube, err := kubernetes.NewForConfig(cfg)
	return kube, errors.Wrap(err, "cannot make a client of the Kubernetes API")
}

// writeCertificates writes the certificates of the chart's extension.
func writeCertificates(ctx context.Context, c *CLI, log logging.Logger) error {
	kube, err := kubeClient(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	return credentials.NewWriter(kube, c.Namespace, c.WriteCertificates, c.CertificateNames, log).Write(ctx)
}

func startKeeper(ctx context.Context, c *CLI, log logging.Logger) (*credentials.Keeper, error) {
	kube, err := kubeClient(c)
	if err != nil {
		return nil, err
	}
	k := credentials.NewKeeper(kube, c.Namespace, c.MakeCertificates, log)
	return k, k.Start(ctx)
}

// serverCertificate returns the certificate in a folder, or the generated one. Nil if there is
// neither.
func (c *certificates) serverCertificate(dir string) (serve.CertificateFn, error) {
	switch {
	case dir != "":
		cert, err := serve.NewCertificate(dir)
		if err != nil {
			return nil, err
		}
		c.watched = append(c.watched, cert)
		return cert.Get, nil
	case c.keeper != nil:
		return c.keeper.Get, nil
	}
	return nil, nil
}

// clients returns clients with certificates of the authorities in a file, or of the generated one.
// Nil if there is neither.
func (c *certificates) clients(file, name string, keeperName func(*credentials.Keeper) string) (*serve.Clients, error) {
	switch {
	case file != "":
		return serve.ClientsOf(file, name)
	case c.keeper != nil:
		return &serve.Clients{CA: c.keeper.CA, Name: keeperName(c.keeper)}, nil
	}
	return nil, nil
}

// envoyTLSReader returns a function that reads the certificates for Envoys.
func (c *certificates) envoyTLSReader(serverDir, clientDir string) func() (xds.TLS, error) {
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

// setEnvoyTLS sets the certificates in the source of endpoints.
func (c *certificates) setEnvoyTLS(t xds.TLS) {
	s := xds.GoogleGRPC(c.target, c.server, t)
	c.source.Store(&s)
}

// Source returns the current source of endpoints for Envoys whose bootstrap has the authority
// tailscale, or has not.
func (c *certificates) Source(bootstrapped bool) xds.Source {
	if c.mode == modeXDSTP || c.mode == modeAuto && bootstrapped {
		return xds.XDSTP()
	}
	return *c.source.Load()
}

// expiry returns the function that returns a certificate's expiry, by server.
func (c *certificates) expiry() map[string]func() (time.Time, error) {
	out := map[string]func() (time.Time, error){}
	for name, cert := range map[string]serve.CertificateFn{"hooks": c.hooks, "eds": c.eds} {
		if cert != nil {
			out[name] = cert.NotAfter
		}
	}
	return out
}

// run reloads renewed certificates until ctx ends. It calls changed if the certificates for Envoys
// change, because clusters have them.
func (c *certificates) run(ctx context.Context, changed func()) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, cert := range c.watched {
		g.Go(func() error { return cert.Run(ctx) })
	}
	if c.keeper != nil {
		g.Go(func() error { return c.keeper.Run(ctx, func() {}) })
	}
	g.Go(func() error {
		c.follow(ctx, changed)
		return nil
	})
	return g.Wait()
}

// follow calls changed after each change of the certificates for Envoys, until ctx ends.
func (c *certificates) follow(ctx context.Context, changed func()) {
	last, err := c.envoyTLS()
	if err != nil {
		c.log.Info("Cannot read the certificates for Envoys", "error", err)
	}
	tick := time.NewTicker(readInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		current, err := c.envoyTLS()
		if err != nil {
			c.log.Info("Cannot read the certificates for Envoys; they keep the previous ones", "error", err)
			continue
		}
		if bytes.Equal(current.Roots, last.Roots) && bytes.Equal(current.Cert, last.Cert) {
			continue
		}
		last = current
		c.setEnvoyTLS(current)
		c.log.Info("The certificates for Envoys have changed; requesting new translations")
		changed()
	}
}
