// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

const (
	// rsaBits is Envoy's minimum size of an RSA key.
	rsaBits = 2048

	// maxChain is the greatest number of certificates in a chain. BoringSSL verifies chains of up to
	// 100, and chains in use have three or four.
	maxChain = 10
)

// ParseSecret returns the state of a client certificate in a Secret at a time. A nil Secret
// is one that does not exist.
func ParseSecret(n types.NamespacedName, o *corev1.Secret, at time.Time) ir.CertificateSecret {
	invalid := func(format string, args ...any) ir.CertificateSecret {
		return ir.CertificateSecret{Reason: ir.ReasonInvalidCertificate, Problem: "Secret " + n.String() + " " + fmt.Sprintf(format, args...)}
	}
	if o == nil {
		return invalid("does not exist; make it, or correct clientCertificateRef")
	}
	if o.Type != corev1.SecretTypeTLS {
		return invalid("is of type %q; it must be of %q", o.Type, corev1.SecretTypeTLS)
	}
	c, err := tls.X509KeyPair(o.Data[corev1.TLSCertKey], o.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		// The error could reveal parts of the key.
		return invalid("has no certificate with its key under %s and %s", corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
	}
	if !presentable(c.Leaf) {
		return invalid("has a key that Envoy does not take; make it one of RSA with %d bits or more, or of ECDSA", rsaBits)
	}
	chain, key, ok := encode(c)
	if !ok {
		return invalid("has a certificate under %s that cannot be parsed, or more than %d; correct the certificates of authorities after the first one", corev1.TLSCertKey, maxChain)
	}
	p := ir.NewKeyPair(chain, key, c.Leaf)
	switch {
	case at.Before(p.From):
		return ir.CertificateSecret{
			Reason: ir.ReasonCertificateExpired, Due: p.From,
			Problem: fmt.Sprintf("Secret %s has a certificate that is not valid before %s", n, p.From.Format(time.RFC3339)),
		}
	case !at.Before(p.Expiry):
		return ir.CertificateSecret{
			Reason:  ir.ReasonCertificateExpired,
			Problem: fmt.Sprintf("Secret %s has a certificate that expired at %s; renew it", n, p.Expiry.Format(time.RFC3339)),
		}
	}
	return ir.CertificateSecret{Pair: p, Due: p.Expiry}
}

// encode returns the certificates and the key in PEM, and false if Envoy would refuse them. Envoy
// receives all secrets in one message, which it refuses as a whole, so it gets nothing that was not
// parsed: BoringSSL fails at a block whose content is no certificate
// (SSL_CTX_use_certificate_chain_file), of which tls.X509KeyPair parses only the first.
func encode(c tls.Certificate) (chain, key []byte, ok bool) {
	if len(c.Certificate) > maxChain {
		return nil, nil, false
	}
	for _, der := range c.Certificate {
		if _, err := x509.ParseCertificate(der); err != nil {
			return nil, nil, false
		}
		chain = append(chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		return nil, nil, false
	}
	return chain, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), true
}

// presentable reports whether Envoy accepts the key of a certificate. Envoy would refuse all
// other secrets of the same update with a key that it does not accept.
func presentable(c *x509.Certificate) bool {
	switch k := c.PublicKey.(type) {
	case *rsa.PublicKey:
		return k.N.BitLen() >= rsaBits
	case *ecdsa.PublicKey:
		return k.Curve == elliptic.P256() || k.Curve == elliptic.P384() || k.Curve == elliptic.P521()
	}
	return false
}
