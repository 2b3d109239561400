// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// A ClientCertificate is the certificate that Envoy presents to backends. If Envoy cannot
// present it, no request is sent.
type ClientCertificate struct {
	Secret types.NamespacedName

	// Reason and Problem say why the certificate cannot be presented. Problem is shown to
	// people.
	Reason, Problem string

	// Fingerprint identifies the certificate.
	Fingerprint string
}

// PresentedCertificates are the client certificates that the Gateways of a Snapshot present to backends.
type PresentedCertificates struct{ tables *Tables }

// Certificates returns the client certificates that Gateways present to backends.
func (s *Snapshot) Certificates() PresentedCertificates { return PresentedCertificates{&s.tables} }

// KeyPair returns the key pair of a certificate, or nil if it cannot be presented.
func (p PresentedCertificates) KeyPair(c *ClientCertificate) *KeyPair {
	if c.Problem != "" {
		return nil
	}
	return p.tables.KeyPairs.Get(c.Secret)
}

// Exist reports whether any Gateway presents a client certificate to backends.
func (p PresentedCertificates) Exist() bool { return p.tables.Certificates.Len() > 0 }

// Get returns the client certificate that a Gateway presents to backends, or nil.
func (p PresentedCertificates) Get(gateway types.NamespacedName) *ClientCertificate {
	return p.tables.Certificates.Get(gateway)
}

// Withheld says why no requests of a route are sent to a target: a Gateway of the route
// cannot present its client certificate. It returns the empty string if all Gateways can.
func (p PresentedCertificates) Withheld(r *Route, t *Target) string {
	if t.Shape.TLS == nil {
		return ""
	}
	for _, g := range r.Gateways {
		if c := p.tables.Certificates.Get(g); c != nil && c.Problem != "" {
			return fmt.Sprintf("Gateway %s cannot present its client certificate: %s", g, c.Problem)
		}
	}
	return ""
}

// Reasons why a client certificate cannot be presented.
const (
	// ReasonInvalidCertificate is for a Secret that does not exist, or that has no
	// certificate that Envoy can present.
	ReasonInvalidCertificate = string(gwapiv1.GatewayReasonInvalidClientCertificateRef)
	// ReasonCertificateExpired is for a certificate that is not valid now.
	ReasonCertificateExpired = "ClientCertificateExpired"
	// ReasonNotReadable is for a Secret that the extension may not read.
	ReasonNotReadable = "ClientCertificateNotReadable"
	// ReasonNotPermitted is for a Secret of another namespace without a ReferenceGrant.
	ReasonNotPermitted = string(gwapiv1.RouteReasonRefNotPermitted)
	// ReasonTooManySecrets is for a Secret beyond the limit of its namespace.
	ReasonTooManySecrets = "TooManyClientCertificates"

	// ReasonPending is for a Secret that has not been read yet.
	ReasonPending = string(gwapiv1.GatewayReasonPending)
)

// A KeyPair is a client certificate with its key. Formatting it never prints the key.
type KeyPair struct {
	// Chain of certificates, in PEM.
	Chain []byte
	key   []byte

	// From and Expiry are when the certificate is valid.
	From, Expiry time.Time

	// Client reports that the certificate is meant for clients.
	Client bool
}

// NewKeyPair returns a key pair of a chain and a key, both in PEM.
func NewKeyPair(chain, key []byte, leaf *x509.Certificate) *KeyPair {
	return &KeyPair{
		Chain: chain, key: key, From: leaf.NotBefore.UTC(), Expiry: leaf.NotAfter.UTC(),
		Client: len(leaf.ExtKeyUsage)+len(leaf.UnknownExtKeyUsage) == 0 ||
			slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageClientAuth) || slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageAny),
	}
}

// Key returns the key in PEM. It is for Envoy alone.
func (p *KeyPair) Key() []byte { return p.key }

// Format implements fmt.Formatter, for all verbs.
func (p *KeyPair) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "a certificate that is valid until %s", p.Expiry.Format(time.RFC3339)) // fmt reports write errors.
}

// Fingerprint returns the hash of the certificate chain, which reveals nothing about the
// key. It returns the empty string for nil.
func (p *KeyPair) Fingerprint() string {
	if p == nil {
		return ""
	}
	h := sha256.Sum256(p.Chain)
	return hex.EncodeToString(h[:])
}

// A CertificateSecret is the state of a Secret with a client certificate.
type CertificateSecret struct {
	// Pair is nil if no certificate can be presented.
	Pair *KeyPair

	// Reason and Problem say why. Problem is shown to people.
	Reason, Problem string

	// Due is the time at which the state changes although the Secret does not. Zero means
	// never.
	Due time.Time
}

// UnreadableSecret returns the state of a Secret that the extension may not read.
func UnreadableSecret(n types.NamespacedName) CertificateSecret {
	return CertificateSecret{
		Reason:  ReasonNotReadable,
		Problem: fmt.Sprintf("The extension may not read Secret %s; grant it get, list and watch of that Secret by a Role with resourceNames", n),
	}
}
