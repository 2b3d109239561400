// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Reasons why a client certificate cannot be presented.
const (
	// ReasonInvalidCertificate is for a Secret that is not there, or has no certificate
	// that Envoy could present.
	ReasonInvalidCertificate = string(gwapiv1.GatewayReasonInvalidClientCertificateRef)
	// ReasonCertificateExpired is for a certificate that is not valid now.
	ReasonCertificateExpired = "ClientCertificateExpired"
	// ReasonNotReadable is for a Secret that the extension may not read.
	ReasonNotReadable = "ClientCertificateNotReadable"
	// ReasonNotPermitted is for a Secret of another namespace without a ReferenceGrant.
	ReasonNotPermitted = string(gwapiv1.RouteReasonRefNotPermitted)
	// ReasonPending is for a Secret of which nothing is known yet.
	ReasonPending = string(gwapiv1.GatewayReasonPending)
)

// rsaBits are as many as Envoy wants of an RSA key.
const rsaBits = 2048

// A KeyPair is a client certificate with its key. Whatever prints it prints no key.
type KeyPair struct {
	// Chain of certificates, in PEM.
	Chain []byte
	key   []byte

	// From and Until are when the certificate is valid.
	From, Until time.Time

	// Client reports that the certificate is meant for clients.
	Client bool
}

// NewKeyPair of a chain and a key, in PEM.
func NewKeyPair(chain, key []byte, leaf *x509.Certificate) *KeyPair {
	return &KeyPair{
		Chain: chain, key: key, From: leaf.NotBefore.UTC(), Until: leaf.NotAfter.UTC(),
		Client: len(leaf.ExtKeyUsage)+len(leaf.UnknownExtKeyUsage) == 0 ||
			slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageClientAuth) || slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageAny),
	}
}

// Key in PEM. It is for Envoy alone.
func (p *KeyPair) Key() []byte { return p.key }

// Format implements fmt.Formatter, for all verbs.
func (p *KeyPair) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "a certificate that is valid until %s", p.Until.Format(time.RFC3339)) // Who prints hears of it.
}

// fingerprint of the certificate, which another key has not. Nothing can be told of the
// key by it.
func (p *KeyPair) fingerprint() string {
	if p == nil {
		return ""
	}
	h := sha256.Sum256(p.Chain)
	return hex.EncodeToString(h[:])
}

// A Held is what is known of a Secret with a client certificate.
type Held struct {
	// Pair is nil if there is none that can be presented.
	Pair *KeyPair

	// Reason and Problem say why, the latter for people.
	Reason, Problem string

	// Due is when the same Secret means something else. Zero is never.
	Due time.Time
}

// Hold what a Secret has at a time. Nil is one that does not exist.
func Hold(n types.NamespacedName, o *corev1.Secret, now time.Time) Held {
	invalid := func(format string, args ...any) Held {
		return Held{Reason: ReasonInvalidCertificate, Problem: "Secret " + n.String() + " " + fmt.Sprintf(format, args...)}
	}
	if o == nil {
		return invalid("does not exist; make it, or correct clientCertificateRef")
	}
	if o.Type != corev1.SecretTypeTLS {
		return invalid("is of type %q; it must be of %q", o.Type, corev1.SecretTypeTLS)
	}
	chain, key := o.Data[corev1.TLSCertKey], o.Data[corev1.TLSPrivateKeyKey]
	c, err := tls.X509KeyPair(chain, key)
	if err != nil {
		// What is wrong with a key is not told.
		return invalid("has no certificate with its key under %s and %s", corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
	}
	if !presentable(c.Leaf) {
		return invalid("has a key that Envoy does not take; make it one of RSA with %d bits or more, or of ECDSA", rsaBits)
	}
	p := NewKeyPair(chain, key, c.Leaf)
	switch {
	case now.Before(p.From):
		return Held{
			Reason: ReasonCertificateExpired, Due: p.From,
			Problem: fmt.Sprintf("Secret %s has a certificate that is not valid before %s", n, p.From.Format(time.RFC3339)),
		}
	case !now.Before(p.Until):
		return Held{
			Reason:  ReasonCertificateExpired,
			Problem: fmt.Sprintf("Secret %s has a certificate that expired at %s; renew it", n, p.Until.Format(time.RFC3339)),
		}
	}
	return Held{Pair: p, Due: p.Until}
}

// presentable reports whether Envoy takes a certificate's key: it would refuse all secrets
// that come with another one.
func presentable(c *x509.Certificate) bool {
	switch k := c.PublicKey.(type) {
	case *rsa.PublicKey:
		return k.N.BitLen() >= rsaBits
	case *ecdsa.PublicKey:
		return k.Curve == elliptic.P256() || k.Curve == elliptic.P384() || k.Curve == elliptic.P521()
	}
	return false
}

// Unreadable is a Secret that the extension may not read.
func Unreadable(n types.NamespacedName) Held {
	return Held{
		Reason:  ReasonNotReadable,
		Problem: fmt.Sprintf("The extension may not read Secret %s; grant it get, list and watch of that Secret by a Role with resourceNames", n),
	}
}
