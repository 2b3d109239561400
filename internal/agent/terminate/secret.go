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

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
)

// A watch is on one Secret, which may hold several certificates. The Server's lock
// guards it.
type watch struct {
	cancel func()

	// seen reports whether the Secret, or its absence, is known; last is the known one.
	seen bool
	last *corev1.Secret
}

// A secret is what is known of a certificate in a Secret. All but cert is guarded by
// the Server's lock.
type secret struct {
	ref plan.CertificateRef

	// known reports whether the Secret, or its absence, was seen. What was stored by
	// an earlier run counts as seen.
	known bool

	// gone reports that there is no such Secret.
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

func newSecret(ref plan.CertificateRef) *secret {
	return &secret{ref: ref, cert: &atomic.Pointer[tls.Certificate]{}}
}

// usable reports whether there is a certificate to end TLS with. Who deletes a Secret
// wants it used no more; but a machine's state may be lost, and what it held is as
// good as before.
func (s *secret) usable() bool {
	return s.cert.Load() != nil && (!s.gone || s.ref.Domain != "")
}

// set takes over what a Secret holds; nil is that there is none. It reports whether
// the certificate is another one now. One that is no good does not replace one that
// was.
func (s *secret) set(o *corev1.Secret) bool {
	s.known, s.gone, s.problem = true, o == nil, ""
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

// parse the pair. Errors name the key of the Secret that is to be fixed, and hold
// nothing of its value.
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
