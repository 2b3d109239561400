// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package terminate

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A secret is what is known of a Secret of type kubernetes.io/tls. All but cert is
// guarded by the Server's lock.
type secret struct {
	cancel func()

	// known tells whether the Secret, or its absence, was seen. What was stored by
	// an earlier run counts as seen.
	known bool

	// gone tells that there is no such Secret.
	gone bool

	// problem with what the Secret holds. Empty if there is none.
	problem string

	// pair is what cert was made from.
	pair pair

	// cert is the last one that was good. Nil if there was none.
	cert *atomic.Pointer[tls.Certificate]
}

// A pair is a certificate and its key, each PEM.
type pair struct {
	Cert []byte `json:"cert"`
	Key  []byte `json:"key"`
}

func newSecret() *secret { return &secret{cert: &atomic.Pointer[tls.Certificate]{}} }

// set takes over what a Secret holds; nil is that there is none. It tells whether
// the certificate is another one now. One that is no good does not replace one that
// was.
func (s *secret) set(o *corev1.Secret) bool {
	s.known, s.gone, s.problem = true, o == nil, ""
	if o == nil {
		s.problem = "there is no such Secret"
		return false
	}
	p := pair{Cert: o.Data[corev1.TLSCertKey], Key: o.Data[corev1.TLSPrivateKeyKey]}
	if s.cert.Load() != nil && bytes.Equal(p.Cert, s.pair.Cert) && bytes.Equal(p.Key, s.pair.Key) {
		return false
	}
	c, err := p.parse()
	if err != nil {
		s.problem = err.Error()
		return false
	}
	s.pair = p
	s.cert.Store(c)
	return true
}

// parse the pair. Errors name the key of the Secret that is to be mended, and hold
// nothing of its value.
func (p pair) parse() (*tls.Certificate, error) {
	for _, k := range []struct {
		name  string
		value []byte
	}{{corev1.TLSCertKey, p.Cert}, {corev1.TLSPrivateKeyKey, p.Key}} {
		if len(k.value) == 0 {
			return nil, errors.Errorf("key %s is missing or empty", k.name)
		}
	}
	block, _ := pem.Decode(p.Cert)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errors.Errorf("key %s does not begin with a certificate in PEM", corev1.TLSCertKey)
	}
	if _, err := x509.ParseCertificate(block.Bytes); err != nil {
		return nil, errors.Errorf("key %s holds a certificate that cannot be read", corev1.TLSCertKey)
	}
	c, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		return nil, errors.Errorf("key %s does not hold the private key, in PEM, of the certificate in %s", corev1.TLSPrivateKeyKey, corev1.TLSCertKey)
	}
	return &c, nil
}

// config of TLS with the certificate as it is at each handshake.
func (s *secret) config(protocols ...string) *tls.Config {
	cert := s.cert
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: protocols,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			if c := cert.Load(); c != nil {
				return c, nil
			}
			return nil, errors.New("no certificate yet")
		},
	}
}
