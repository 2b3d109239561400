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

// A Shower has the certificate that a server shows. It is asked at each handshake.
type Shower func(*tls.ClientHelloInfo) (*tls.Certificate, error)

// NotAfter is when the certificate ends. It is an error if there is none.
func (s Shower) NotAfter() (time.Time, error) {
	of, err := s(nil)
	if err != nil {
		return time.Time{}, errors.Wrap(err, "cannot get certificate")
	}
	leaf := of.Leaf
	if leaf == nil {
		if leaf, err = x509.ParseCertificate(of.Certificate[0]); err != nil {
			return time.Time{}, errors.Wrap(err, "cannot read certificate")
		}
	}
	return leaf.NotAfter, nil
}

// Clients are those that a server answers.
type Clients struct {
	// CA returns what their certificates must chain to, in PEM. Each handshake calls it.
	CA func() ([]byte, error)

	// Name is what their certificates must be for, beside that: an authority may have
	// signed others. Empty is any.
	Name string
}

// Credentials that show a certificate, and answer clients that show one of theirs. Nil
// clients are all. Without a certificate to show there is no TLS.
func Credentials(show Shower, clients *Clients) credentials.TransportCredentials {
	if show == nil {
		return insecure.NewCredentials()
	}
	// A client that comes again is looked at again.
	cfg := &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: show, SessionTicketsDisabled: true}
	if clients == nil {
		return credentials.NewTLS(cfg)
	}
	cfg.ClientAuth = tls.RequireAndVerifyClientCert
	cfg.VerifyConnection = clients.verify
	cfg.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		pool, err := clients.pool()
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

func (c *Clients) pool() (*x509.CertPool, error) {
	b, err := c.CA()
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(b) {
		return nil, errors.New("there is no certificate that clients' could chain to")
	}
	return pool, nil
}

// verify the name in a certificate whose chain has been verified.
func (c *Clients) verify(s tls.ConnectionState) error {
	if c.Name == "" {
		return nil
	}
	return errors.Wrapf(s.PeerCertificates[0].VerifyHostname(c.Name), "the client's certificate is not for %q", c.Name)
}

// ClientsOf returns those whose certificates chain to what a file holds, and are for a
// name. It is an error if the file holds nothing: nobody would be answered.
func ClientsOf(file, name string) (*Clients, error) {
	c := &Clients{Name: name, CA: func() ([]byte, error) {
		b, err := os.ReadFile(file)
		return b, errors.Wrap(err, "cannot read what clients' certificates chain to")
	}}
	_, err := c.pool()
	return c, errors.Wrapf(err, "cannot use %q", file)
}

// A Certificate is what a server shows, from the folder of a mounted Secret. It is
// read again when it changes; connections that are open stay so.
type Certificate struct {
	dir     string
	watcher *certwatcher.CertWatcher
}

// NewCertificate reads tls.crt and tls.key in dir.
func NewCertificate(dir string) (*Certificate, error) {
	w, err := certwatcher.New(filepath.Join(dir, certFile), filepath.Join(dir, keyFile))
	return &Certificate{dir: dir, watcher: w}, errors.Wrapf(err, "cannot read certificate in %q", dir)
}

// Run watches the files until ctx ends.
func (c *Certificate) Run(ctx context.Context) error {
	return errors.Wrapf(c.watcher.Start(ctx), "cannot watch certificate in %q", c.dir)
}

// Show is a Shower.
func (c *Certificate) Show(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
	of, err := c.watcher.GetCertificate(h)
	return of, errors.Wrapf(err, "cannot get certificate in %q", c.dir)
}

// ReadRoots reads ca.crt of a folder: what the certificate there chains to. It is
// an error if there is none: Envoys would trust nobody.
func ReadRoots(dir string) ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(dir, caFile))
	return b, errors.Wrapf(err, "cannot read what the certificate in %q chains to", dir)
}

// ReadPair reads tls.crt and tls.key of a folder, which go together. Between the two a
// Secret may have been renewed: then it is an error, and they are to be read again.
func ReadPair(dir string) (cert, key []byte, err error) {
	if cert, err = os.ReadFile(filepath.Join(dir, certFile)); err != nil {
		return nil, nil, errors.Wrap(err, "cannot read certificate")
	}
	if key, err = os.ReadFile(filepath.Join(dir, keyFile)); err != nil {
		return nil, nil, errors.Wrap(err, "cannot read key")
	}
	_, err = tls.X509KeyPair(cert, key)
	return cert, key, errors.Wrapf(err, "cannot use certificate in %q", dir)
}
