// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package certificates holds the certificates of the extension's servers and of their clients, from files
// or generated, and follows their renewal.
package certificates

import (
	"bytes"
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/extension/credentials"
	"github.com/tailscale-gateway/tailscale-gateway/extension/serve"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

const (
	// readInterval is the interval at which the extension reads the certificate files whose contents it
	// sends to Envoys.
	readInterval = 10 * time.Second

	// writeLimit is the time for the requests of Write. The Job that writes starts another pod after a
	// failure.
	writeLimit = time.Minute
)

// ServerOptions are the files of one server.
type ServerOptions struct {
	// TLS is the folder with tls.crt and tls.key. Empty means the generated certificate, or no TLS.
	TLS string

	// ClientCA is the file with the authorities of clients' certificates. Empty means the generated
	// authority, or any client.
	ClientCA string

	// ClientName is the DNS name that clients' certificates must have. Empty permits any.
	ClientName string
}

// Options of Certificates.
type Options struct {
	// Hooks and EDS are the files of the two servers.
	Hooks, EDS ServerOptions

	// EnvoyTLS is the folder with the tls.crt and tls.key that Envoys present.
	EnvoyTLS string

	// Target is the address that Envoys dial for endpoints, and Server the name that they verify if it
	// differs.
	Target, Server string

	// Mode is how Envoys subscribe to endpoints.
	Mode xds.Mode

	// Generate is the name of the Secrets with generated certificates, which replace missing files.
	// Empty generates none.
	Generate string

	// Namespace is the namespace of the Secrets.
	Namespace string
}

// Certificates are the certificates of both servers, and of their clients.
type Certificates struct {
	// Hooks and EDS are the certificates of the servers. Nil means no TLS.
	Hooks, EDS serve.CertificateFn

	// HooksClients and EDSClients are the clients that the servers answer. Nil means any client.
	HooksClients, EDSClients *serve.Clients

	// watched are the certificates that are files.
	watched []*serve.Certificate

	// keeper of generated certificates. May be nil.
	keeper *credentials.Keeper

	// envoyTLS reads the certificates that each cluster sends to Envoys.
	envoyTLS func() (xds.TLS, error)

	// source of endpoints in clusters that name the extension's address.
	source atomic.Pointer[xds.Source]

	target, server string
	mode           xds.Mode
	log            logging.Logger
}

// New reads the certificates in files, and generates the others if the options request that. cfg leads to
// the API server, and may be nil if none are generated.
func New(ctx context.Context, cfg *rest.Config, o Options, log logging.Logger) (*Certificates, error) {
	target, err := xds.DialTarget(o.Target)
	if err != nil {
		return nil, err
	}
	out := &Certificates{target: target, server: o.Server, mode: o.Mode, log: log}
	if o.Generate != "" {
		if out.keeper, err = startKeeper(ctx, cfg, o, log); err != nil {
			return nil, err
		}
	}
	if out.Hooks, err = out.serverCertificate(o.Hooks.TLS); err != nil {
		return nil, err
	}
	if out.EDS, err = out.serverCertificate(o.EDS.TLS); err != nil {
		return nil, err
	}
	if out.HooksClients, err = out.clients(o.Hooks, (*credentials.Keeper).ClientName); err != nil {
		return nil, err
	}
	if out.EDSClients, err = out.clients(o.EDS, (*credentials.Keeper).EnvoyName); err != nil {
		return nil, err
	}
	out.envoyTLS = out.envoyTLSReader(o.EDS.TLS, o.EnvoyTLS)
	t, err := out.envoyTLS()
	if err != nil {
		return nil, err
	}
	out.setEnvoyTLS(t)
	return out, nil
}

// Write creates or renews the certificates of the chart's extension in the Secrets of a namespace. servers
// are the DNS names of both servers.
func Write(ctx context.Context, cfg *rest.Config, namespace, name string, servers []string, log logging.Logger) error {
	kube, err := newClient(cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	return credentials.NewWriter(kube, namespace, name, servers, log).Write(ctx)
}

func newClient(cfg *rest.Config) (*typedcorev1.CoreV1Client, error) {
	kube, err := typedcorev1.NewForConfig(cfg)
	return kube, errors.Wrap(err, "cannot make a client of the Kubernetes API")
}

func startKeeper(ctx context.Context, cfg *rest.Config, o Options, log logging.Logger) (*credentials.Keeper, error) {
	kube, err := newClient(cfg)
	if err != nil {
		return nil, err
	}
	k := credentials.NewKeeper(kube, o.Namespace, o.Generate, log)
	return k, k.Start(ctx)
}

// serverCertificate returns the certificate in a folder, or the generated one. Nil if there is
// neither.
func (c *Certificates) serverCertificate(dir string) (serve.CertificateFn, error) {
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
func (c *Certificates) clients(o ServerOptions, keeperName func(*credentials.Keeper) string) (*serve.Clients, error) {
	switch {
	case o.ClientCA != "":
		return serve.ClientsOf(o.ClientCA, o.ClientName)
	case c.keeper != nil:
		return &serve.Clients{CA: c.keeper.CA, Name: keeperName(c.keeper)}, nil
	}
	return nil, nil
}

// envoyTLSReader returns a function that reads the certificates for Envoys.
func (c *Certificates) envoyTLSReader(serverDir, clientDir string) func() (xds.TLS, error) {
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
func (c *Certificates) setEnvoyTLS(t xds.TLS) {
	s := xds.GoogleGRPC(c.target, c.server, t)
	c.source.Store(&s)
}

// Source returns the current source of endpoints for Envoys whose bootstrap has the authority
// tailscale, or has not.
func (c *Certificates) Source(bootstrapped bool) xds.Source {
	if c.mode == xds.ModeXDSTP || c.mode == xds.ModeAuto && bootstrapped {
		return xds.XDSTP()
	}
	return *c.source.Load()
}

// Expiry returns the function that returns a certificate's expiry, by server.
func (c *Certificates) Expiry() map[string]func() (time.Time, error) {
	out := map[string]func() (time.Time, error){}
	for name, cert := range map[string]serve.CertificateFn{"hooks": c.Hooks, "eds": c.EDS} {
		if cert != nil {
			out[name] = cert.NotAfter
		}
	}
	return out
}

// Run reloads renewed certificates until ctx ends. It calls changed if the certificates for Envoys
// change, because clusters have them.
func (c *Certificates) Run(ctx context.Context, changed func()) error {
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
func (c *Certificates) follow(ctx context.Context, changed func()) {
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
