// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package pki creates the certificates, keys and kubeconfigs of a cluster. They
// last as long as the cluster and are never renewed.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	clientcmd "k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// Lifetime is the lifetime of all certificates, which is longer than that of a lab.
const Lifetime = 10 * 365 * 24 * time.Hour

// A Request describes one certificate.
type Request struct {
	// Name is the common name, which Kubernetes takes as the user.
	Name string
	// Groups are the organisations, which Kubernetes takes as groups.
	Groups []string
	// DNS names and IP addresses for a server's certificate. When both are
	// empty the certificate is for clients only.
	DNS []string
	IPs []net.IP
}

// An Authority signs certificates.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	at   time.Time
}

// NewAuthority returns an authority whose certificates are valid from an hour before at.
func NewAuthority(name string, at time.Time) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, errors.Wrap(err, "cannot make key")
	}
	t := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             at.Add(-time.Hour),
		NotAfter:              at.Add(Lifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, errors.Wrapf(err, "cannot sign authority %q", name)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, errors.Wrapf(err, "cannot read back authority %q", name)
	}
	return &Authority{cert: cert, key: key, at: at}, nil
}

// PEM returns the authority's certificate.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// KeyPEM returns the authority's key.
func (a *Authority) KeyPEM() ([]byte, error) { return encodeKey(a.key) }

// Issue creates a key and a certificate for it.
func (a *Authority) Issue(r Request) (cert, key []byte, err error) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, errors.Wrap(err, "cannot make key")
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, errors.Wrap(err, "cannot make serial number")
	}
	t := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: r.Name, Organization: r.Groups},
		NotBefore:    a.at.Add(-time.Hour),
		NotAfter:     a.at.Add(Lifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		DNSNames:     r.DNS,
		IPAddresses:  r.IPs,
	}
	if len(r.DNS)+len(r.IPs) > 0 {
		t.ExtKeyUsage = append(t.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, k.Public(), a.key)
	if err != nil {
		return nil, nil, errors.Wrapf(err, "cannot sign certificate of %q", r.Name)
	}
	key, err = encodeKey(k)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key, nil
}

// NewKeyPair returns a new key pair, for signing ServiceAccount tokens.
func NewKeyPair() (private, public []byte, err error) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, errors.Wrap(err, "cannot make key")
	}
	private, err = encodeKey(k)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(k.Public())
	if err != nil {
		return nil, nil, errors.Wrap(err, "cannot encode public key")
	}
	return private, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}

func encodeKey(k crypto.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		return nil, errors.Wrap(err, "cannot encode key")
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// Kubeconfig returns a kubeconfig with one cluster, user and context, all of
// the given name.
func Kubeconfig(name, server string, ca, cert, key []byte) ([]byte, error) {
	c := clientcmdapi.NewConfig()
	c.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	c.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
	c.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	c.CurrentContext = name
	out, err := clientcmd.Write(*c)
	return out, errors.Wrapf(err, "cannot encode kubeconfig %q", name)
}

// WritePair writes dir/name.crt and dir/name.key, the key for root only.
func WritePair(dir, name string, cert, key []byte) error {
	if err := os.WriteFile(filepath.Join(dir, name+".crt"), cert, 0o644); err != nil { // A certificate is public.
		return errors.Wrapf(err, "cannot write certificate %q", name)
	}
	return errors.Wrapf(os.WriteFile(filepath.Join(dir, name+".key"), key, 0o600), "cannot write key %q", name)
}
