// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package terminate

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// A watch watches one Secret, which can hold several certificates. The Server's lock guards it.
type watch struct {
	cancel func()

	// seen reports whether it is known what the Secret holds, or that it does not exist; last is
	// the known Secret.
	seen bool
	last *corev1.Secret
}

// A secret is the known state of a certificate in a Secret. The Server's lock guards all fields
// except cert.
type secret struct {
	ref plan.CertificateRef

	// loaded reports whether it is known what the Secret holds, or that it does not exist. A
	// certificate that an earlier run has stored counts as known.
	loaded bool

	// absent reports that the Secret does not exist.
	absent bool

	// problem says what is wrong with the content of the Secret. Empty if there is no problem.
	problem string

	// pair is the pair that cert was made from.
	pair pair

	// cert is the last valid certificate. Nil if there was none.
	cert *atomic.Pointer[tls.Certificate]
}

// A pair is a certificate and its private key, each in PEM.
type pair struct {
	Cert []byte `json:"cert"`
	Key  []byte `json:"key"`
}

func newSecret(ref plan.CertificateRef) *secret {
	return &secret{ref: ref, cert: &atomic.Pointer[tls.Certificate]{}}
}

// usable reports whether there is a certificate to terminate TLS with. After a Secret is
// deleted, its certificate is no longer used. But a machine's state Secret can be lost by
// accident, and its certificates stay usable.
func (s *secret) usable() bool {
	return s.cert.Load() != nil && (!s.absent || s.ref.Domain != "")
}

// notAfter returns when the certificate in use expires. Zero if there is none.
func (s *secret) notAfter() time.Time {
	if c := s.cert.Load(); c != nil && s.usable() {
		return c.Leaf.NotAfter
	}
	return time.Time{}
}

// set updates the certificate from a Secret, or records that the Secret does not exist if o is
// nil. It reports whether the certificate has changed. An invalid certificate does not replace
// a valid one.
func (s *secret) set(o *corev1.Secret) bool {
	s.loaded, s.absent, s.problem = true, o == nil, ""
	if o == nil {
		s.problem = "there is no such Secret"
		return false
	}
	cert, key := s.ref.Keys()
	p := pair{Cert: o.Data[cert], Key: o.Data[key]}
	if s.cert.Load() != nil && bytes.Equal(p.Cert, s.pair.Cert) && bytes.Equal(p.Key, s.pair.Key) {
		return false
	}
	c, err := p.parse(s.ref)
	if err != nil {
		s.problem = err.Error()
		return false
	}
	s.pair = p
	s.cert.Store(c)
	return true
}

// parse parses the pair. Errors name the key of the Secret to fix, and contain nothing of its
// value.
func (p pair) parse(ref plan.CertificateRef) (*tls.Certificate, error) {
	certKey, keyKey := ref.Keys()
	for _, k := range []struct {
		name  string
		value []byte
	}{{certKey, p.Cert}, {keyKey, p.Key}} {
		if len(k.value) == 0 {
			return nil, errors.Errorf("key %s is missing or empty", k.name)
		}
	}
	block, _ := pem.Decode(p.Cert)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errors.Errorf("key %s does not begin with a certificate in PEM", certKey)
	}
	if _, err := x509.ParseCertificate(block.Bytes); err != nil {
		return nil, errors.Errorf("key %s holds a certificate that cannot be read", certKey)
	}
	c, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		return nil, errors.Errorf("key %s does not hold the private key, in PEM, of the certificate in %s", keyKey, certKey)
	}
	return &c, nil
}

// config returns a TLS config that uses the current certificate at each handshake.
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
