// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"time"

	"k8s.io/client-go/util/keyutil"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

const (
	// authorityLife and leafLife are the lifetimes of certificates. They are renewed after two
	// thirds of that.
	authorityLife = 10 * 365 * 24 * time.Hour
	leafLife      = 365 * 24 * time.Hour

	// skew is the permitted difference of clocks.
	skew = 5 * time.Minute

	serialBits = 127

	certificateBlock = "CERTIFICATE"
)

// A Pair is a certificate and its key, in PEM.
type Pair struct {
	Cert, Key []byte
}

// leaf returns the parsed certificate.
func (p Pair) leaf() (*x509.Certificate, error) {
	pair, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		return nil, errors.Wrap(err, "cannot read certificate")
	}
	if pair.Leaf != nil {
		return pair.Leaf, nil
	}
	out, err := x509.ParseCertificate(pair.Certificate[0])
	return out, errors.Wrap(err, "cannot read certificate")
}

// An Authority signs certificates.
type Authority struct {
	// Pair of the authority itself.
	Pair

	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority returns a new authority of that name.
func NewAuthority(name string, at time.Time) (*Authority, error) {
	return issue(&x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign,
		NotBefore:             at.Add(-skew),
		NotAfter:              at.Add(authorityLife),
	}, nil)
}

// readAuthority parses the pair of an authority.
func readAuthority(p Pair) (*Authority, error) {
	cert, err := p.leaf()
	if err != nil {
		return nil, err
	}
	key, err := keyutil.ParsePrivateKeyPEM(p.Key)
	if err != nil {
		return nil, errors.Wrap(err, "cannot read key")
	}
	ecKey, ok := key.(*ecdsa.PrivateKey)
	if !ok || !cert.IsCA {
		return nil, errors.New("the certificate is not an authority of the extension")
	}
	return &Authority{Pair: p, cert: cert, key: ecKey}, nil
}

// Server issues a server certificate for names and addresses.
func (a *Authority) Server(names []string, at time.Time) (Pair, error) {
	return a.leafOf(names, x509.ExtKeyUsageServerAuth, at)
}

// Client issues a client certificate for a name.
func (a *Authority) Client(name string, at time.Time) (Pair, error) {
	return a.leafOf([]string{name}, x509.ExtKeyUsageClientAuth, at)
}

func (a *Authority) leafOf(names []string, usage x509.ExtKeyUsage, at time.Time) (Pair, error) {
	t := &x509.Certificate{
		// A DNS name has up to 253 characters, and a common name 64. Clients ignore it.
		Subject:     pkix.Name{CommonName: names[0][:min(len(names[0]), 64)]},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{usage},
		NotBefore:   at.Add(-skew),
		NotAfter:    at.Add(leafLife),
	}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
			continue
		}
		t.DNSNames = append(t.DNSNames, n)
	}
	out, err := issue(t, a)
	if err != nil {
		return Pair{}, err
	}
	return out.Pair, nil
}

// issue issues a certificate that an authority, or the certificate itself, signs.
func issue(t *x509.Certificate, parent *Authority) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, errors.Wrap(err, "cannot make a key")
	}
	if t.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits)); err != nil {
		return nil, errors.Wrap(err, "cannot make a serial number")
	}
	if parent == nil {
		parent = &Authority{cert: t, key: key}
	}
	der, err := x509.CreateCertificate(rand.Reader, t, parent.cert, key.Public(), parent.key)
	if err != nil {
		return nil, errors.Wrap(err, "cannot sign a certificate")
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, errors.Wrap(err, "cannot read certificate")
	}
	b, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, errors.Wrap(err, "cannot write key")
	}
	return &Authority{Pair: Pair{Cert: encode(cert), Key: b}, cert: cert, key: key}, nil
}

func encode(certs ...*x509.Certificate) []byte {
	out := &bytes.Buffer{}
	for _, c := range certs {
		_ = pem.Encode(out, &pem.Block{Type: certificateBlock, Bytes: c.Raw}) // A buffer never fails.
	}
	return out.Bytes()
}

// due reports whether a certificate is due for renewal.
func due(c *x509.Certificate, at time.Time) bool {
	return at.After(c.NotAfter.Add(-c.NotAfter.Sub(c.NotBefore) / 3))
}
