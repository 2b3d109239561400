// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// heldAt is when Secrets are looked at.
var heldAt = time.Date(2026, time.June, 1, 0, 0, 0, 0, time.UTC) //nolint:gochecknoglobals // A constant.

// ecdsaKey of a curve that Envoy takes.
func ecdsaKey(t testing.TB) crypto.Signer {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// tlsSecret with a certificate of a key, which is valid for an hour before and after.
func tlsSecret(t testing.TB, key crypto.Signer, usage ...x509.ExtKeyUsage) *corev1.Secret {
	t.Helper()
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "client"}, ExtKeyUsage: usage,
		NotBefore: heldAt.Add(-time.Hour), NotAfter: heldAt.Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.Secret{Type: corev1.SecretTypeTLS, Data: map[string][]byte{
		corev1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}),
	}}
}

func TestHold(t *testing.T) {
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GODEBUG", "rsa1024min=0")
	short, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	k := ecdsaKey(t)
	opaque, mixed := tlsSecret(t, k), tlsSecret(t, k)
	opaque.Type = corev1.SecretTypeOpaque
	mixed.Data[corev1.TLSPrivateKeyKey] = tlsSecret(t, ecdsaKey(t)).Data[corev1.TLSPrivateKeyKey]
	type said struct {
		Pair, Client    bool
		Reason, Problem string
		Due             time.Time
	}
	cases := map[string]struct {
		reason string
		secret *corev1.Secret
		at     time.Time
		want   said
	}{
		"Client":  {reason: "A client's certificate can be presented until it expires.", secret: tlsSecret(t, k, x509.ExtKeyUsageClientAuth), at: heldAt, want: said{Pair: true, Client: true, Due: heldAt.Add(time.Hour)}},
		"Any":     {reason: "A certificate that does not say what for is for clients too.", secret: tlsSecret(t, k), at: heldAt, want: said{Pair: true, Client: true, Due: heldAt.Add(time.Hour)}},
		"Server":  {reason: "Whether a server's certificate will do decides the backend.", secret: tlsSecret(t, k, x509.ExtKeyUsageServerAuth), at: heldAt, want: said{Pair: true, Due: heldAt.Add(time.Hour)}},
		"Missing": {reason: "A Secret that is not there should be told.", at: heldAt, want: said{Reason: ReasonInvalidCertificate, Problem: "Secret shop/client does not exist; make it, or correct clientCertificateRef"}},
		"Opaque":  {reason: "A Secret of another type should be told.", secret: opaque, at: heldAt, want: said{Reason: ReasonInvalidCertificate, Problem: `Secret shop/client is of type "Opaque"; it must be of "kubernetes.io/tls"`}},
		"Mixed":   {reason: "A key of another certificate should be told, and not shown.", secret: mixed, at: heldAt, want: said{Reason: ReasonInvalidCertificate, Problem: "Secret shop/client has no certificate with its key under tls.crt and tls.key"}},
		"Empty":   {reason: "A Secret without a certificate should be told.", secret: &corev1.Secret{Type: corev1.SecretTypeTLS}, at: heldAt, want: said{Reason: ReasonInvalidCertificate, Problem: "Secret shop/client has no certificate with its key under tls.crt and tls.key"}},
		"Edwards": {reason: "A key that Envoy refuses would take other secrets with it.", secret: tlsSecret(t, edwards), at: heldAt, want: said{Reason: ReasonInvalidCertificate, Problem: "Secret shop/client has a key that Envoy does not take; make it one of RSA with 2048 bits or more, or of ECDSA"}},
		"Short":   {reason: "So would one that is too short.", secret: tlsSecret(t, short), at: heldAt, want: said{Reason: ReasonInvalidCertificate, Problem: "Secret shop/client has a key that Envoy does not take; make it one of RSA with 2048 bits or more, or of ECDSA"}},
		"Expired": {reason: "A certificate that has expired should be told, with when.", secret: tlsSecret(t, k), at: heldAt.Add(time.Hour), want: said{Reason: ReasonCertificateExpired, Problem: "Secret shop/client has a certificate that expired at 2026-06-01T01:00:00Z; renew it"}},
		"Early":   {reason: "One that is not valid yet should be, when it is.", secret: tlsSecret(t, k), at: heldAt.Add(-2 * time.Hour), want: said{Reason: ReasonCertificateExpired, Problem: "Secret shop/client has a certificate that is not valid before 2026-05-31T23:00:00Z", Due: heldAt.Add(-time.Hour)}},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			h := Hold(name("client"), tc.secret, tc.at)
			got := said{Pair: h.Pair != nil, Client: h.Pair != nil && h.Pair.Client, Reason: h.Reason, Problem: h.Problem, Due: h.Due}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nHold(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestKeyPairPrintsNoKey, whoever prints it.
func TestKeyPairPrintsNoKey(t *testing.T) {
	h := Hold(name("client"), tlsSecret(t, ecdsaKey(t)), heldAt)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d"} {
		if got := fmt.Sprintf(verb, h.Pair); got != "a certificate that is valid until 2026-06-01T01:00:00Z" {
			t.Errorf("%s prints %q", verb, got)
		}
		if got := fmt.Sprintf(verb, NewSnapshot(Contents{KeyPairs: map[types.NamespacedName]*KeyPair{name("client"): h.Pair}})); strings.Contains(got, "PRIVATE") {
			t.Errorf("%s of a snapshot prints the key", verb)
		}
	}
}
