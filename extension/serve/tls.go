// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// Files of a Secret of type kubernetes.io/tls.
const (
	certFile = "tls.crt"
	keyFile  = "tls.key"
	caFile   = "ca.crt"
)

// A Certificate is what a server shows, from the folder of a mounted Secret. It is
// read again when it changes; connections that are open stay so.
type Certificate struct {
	dir      string
	clientCA string
	watcher  *certwatcher.CertWatcher
}

// NewCertificate reads tls.crt and tls.key in dir. ClientCA, if given, is a file of
// the certificates that clients' must chain to; without it clients need none.
func NewCertificate(dir, clientCA string) (*Certificate, error) {
	w, err := certwatcher.New(filepath.Join(dir, certFile), filepath.Join(dir, keyFile))
	if err != nil {
		return nil, errors.Wrapf(err, "cannot read certificate in %q", dir)
	}
	c := &Certificate{dir: dir, clientCA: clientCA, watcher: w}
	if clientCA != "" {
		if _, err := c.clientPool(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Run watches the files until ctx ends.
func (c *Certificate) Run(ctx context.Context) error {
	return errors.Wrapf(c.watcher.Start(ctx), "cannot watch certificate in %q", c.dir)
}

// Roots is ca.crt of the same folder: what the certificate chains to. It is
// an error if there is none: Envoys would trust nobody.
func (c *Certificate) Roots() ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(c.dir, caFile))
	return b, errors.Wrapf(err, "cannot read what the certificate in %q chains to", c.dir)
}

// NotAfter is when the certificate ends. It is an error if there is none.
func (c *Certificate) NotAfter() (time.Time, error) {
	of, err := c.watcher.GetCertificate(nil)
	if err != nil {
		return time.Time{}, errors.Wrapf(err, "cannot get certificate in %q", c.dir)
	}
	leaf := of.Leaf
	if leaf == nil {
		if leaf, err = x509.ParseCertificate(of.Certificate[0]); err != nil {
			return time.Time{}, errors.Wrapf(err, "cannot read certificate in %q", c.dir)
		}
	}
	return leaf.NotAfter, nil
}

// Credentials that show the certificate. Those of none are none.
func (c *Certificate) Credentials() credentials.TransportCredentials {
	if c == nil {
		return insecure.NewCredentials()
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: c.watcher.GetCertificate}
	if c.clientCA == "" {
		return credentials.NewTLS(cfg)
	}
	cfg.ClientAuth = tls.RequireAndVerifyClientCert
	// Handshakes are few, for an Envoy opens one connection.
	cfg.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		pool, err := c.clientPool()
		if err != nil {
			return nil, err
		}
		of := cfg.Clone()
		of.GetConfigForClient, of.ClientCAs = nil, pool
		of.NextProtos = []string{"h2"}
		return of, nil
	}
	return credentials.NewTLS(cfg)
}

func (c *Certificate) clientPool() (*x509.CertPool, error) {
	b, err := os.ReadFile(c.clientCA)
	if err != nil {
		return nil, errors.Wrap(err, "cannot read what clients' certificates chain to")
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(b) {
		return nil, errors.Errorf("%q holds no certificate", c.clientCA)
	}
	return pool, nil
}
