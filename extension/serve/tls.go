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

// A CertificateFn returns the certificate that a server presents. Each handshake calls it.
type CertificateFn func(*tls.ClientHelloInfo) (*tls.Certificate, error)

// NotAfter returns the time at which the certificate expires. It is an error if there is none.
func (s CertificateFn) NotAfter() (time.Time, error) {
	cert, err := s(nil)
	if err != nil {
		return time.Time{}, errors.Wrap(err, "cannot get certificate")
	}
	leaf := cert.Leaf
	if leaf == nil {
		if leaf, err = x509.ParseCertificate(cert.Certificate[0]); err != nil {
			return time.Time{}, errors.Wrap(err, "cannot read certificate")
		}
	}
	return leaf.NotAfter, nil
}

// Clients describes the clients that a server answers.
type Clients struct {
	// CA returns the authorities of their certificates, in PEM. Each handshake calls it.
	CA func() ([]byte, error)

	// Name that their certificates must have as well: an authority may have signed others. Empty
	// permits any.
	Name string
}

// Credentials returns the credentials of a server with a certificate for the given clients. Nil
// clients permits all. Without a certificate there is no TLS.
func Credentials(show CertificateFn, clients *Clients) credentials.TransportCredentials {
	if show == nil {
		return insecure.NewCredentials()
	}
	// The server verifies the client again in each connection.
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
		clone := cfg.Clone()
		clone.GetConfigForClient, clone.ClientCAs = nil, pool
		clone.NextProtos = []string{"h2"}
		return clone, nil
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
		return nil, errors.New("there is no authority for clients' certificates")
	}
	return pool, nil
}

// verify checks the name in a certificate whose chain is verified.
func (c *Clients) verify(s tls.ConnectionState) error {
	if c.Name == "" {
		return nil
	}
	return errors.Wrapf(s.PeerCertificates[0].VerifyHostname(c.Name), "the client's certificate is not for %q", c.Name)
}

// ClientsOf returns clients whose certificates chain to the authorities in a file, and have a name.
// It is an error if the file has none, because the server would refuse all clients.
func ClientsOf(file, name string) (*Clients, error) {
	c := &Clients{Name: name, CA: func() ([]byte, error) {
		b, err := os.ReadFile(file)
		return b, errors.Wrap(err, "cannot read the authorities of clients' certificates")
	}}
	_, err := c.pool()
	return c, errors.Wrapf(err, "cannot use %q", file)
}

// A Certificate is a server's certificate from the folder of a mounted Secret. It is read again
// after a change; open connections stay.
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

// Get returns the certificate. It is a CertificateFn.
func (c *Certificate) Get(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
	cert, err := c.watcher.GetCertificate(h)
	return cert, errors.Wrapf(err, "cannot get certificate in %q", c.dir)
}

// ReadRoots reads ca.crt of a folder: the authorities of its certificate. It is an error if there
// is none, because Envoys would trust no server.
func ReadRoots(dir string) ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(dir, caFile))
	return b, errors.Wrapf(err, "cannot read the authorities of the certificate in %q", dir)
}

// ReadPair reads tls.crt and tls.key of a folder. It is an error if they do not match, because the
// Secret was renewed between the two reads; the caller then tries again.
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
