// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/objecttest"
)

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
	k := objecttest.ECDSAKey(t)
	opaque, mixed := objecttest.TLSSecret(t, k), objecttest.TLSSecret(t, k)
	opaque.Type = corev1.SecretTypeOpaque
	mixed.Data[corev1.TLSPrivateKeyKey] = objecttest.TLSSecret(t, objecttest.ECDSAKey(t)).Data[corev1.TLSPrivateKeyKey]
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
		"Client":  {reason: "A client's certificate can be presented until it expires.", secret: objecttest.TLSSecret(t, k, x509.ExtKeyUsageClientAuth), at: objecttest.SecretTime, want: said{Pair: true, Client: true, Due: objecttest.SecretTime.Add(time.Hour)}},
		"Any":     {reason: "A certificate that does not say what for is for clients too.", secret: objecttest.TLSSecret(t, k), at: objecttest.SecretTime, want: said{Pair: true, Client: true, Due: objecttest.SecretTime.Add(time.Hour)}},
		"Server":  {reason: "Whether a server's certificate will do decides the backend.", secret: objecttest.TLSSecret(t, k, x509.ExtKeyUsageServerAuth), at: objecttest.SecretTime, want: said{Pair: true, Due: objecttest.SecretTime.Add(time.Hour)}},
		"Missing": {reason: "A Secret that is not there should be told.", at: objecttest.SecretTime, want: said{Reason: ir.ReasonInvalidCertificate, Problem: "Secret shop/client does not exist; make it, or correct clientCertificateRef"}},
		"Opaque":  {reason: "A Secret of another type should be told.", secret: opaque, at: objecttest.SecretTime, want: said{Reason: ir.ReasonInvalidCertificate, Problem: `Secret shop/client is of type "Opaque"; it must be of "kubernetes.io/tls"`}},
		"Mixed":   {reason: "A key of another certificate should be told, and not shown.", secret: mixed, at: objecttest.SecretTime, want: said{Reason: ir.ReasonInvalidCertificate, Problem: "Secret shop/client has no certificate with its key under tls.crt and tls.key"}},
		"Empty":   {reason: "A Secret without a certificate should be told.", secret: &corev1.Secret{Type: corev1.SecretTypeTLS}, at: objecttest.SecretTime, want: said{Reason: ir.ReasonInvalidCertificate, Problem: "Secret shop/client has no certificate with its key under tls.crt and tls.key"}},
		"Edwards": {reason: "A key that Envoy refuses would take other secrets with it.", secret: objecttest.TLSSecret(t, edwards), at: objecttest.SecretTime, want: said{Reason: ir.ReasonInvalidCertificate, Problem: "Secret shop/client has a key that Envoy does not take; make it one of RSA with 2048 bits or more, or of ECDSA"}},
		"Short":   {reason: "So would one that is too short.", secret: objecttest.TLSSecret(t, short), at: objecttest.SecretTime, want: said{Reason: ir.ReasonInvalidCertificate, Problem: "Secret shop/client has a key that Envoy does not take; make it one of RSA with 2048 bits or more, or of ECDSA"}},
		"Expired": {reason: "A certificate that has expired should be told, with when.", secret: objecttest.TLSSecret(t, k), at: objecttest.SecretTime.Add(time.Hour), want: said{Reason: ir.ReasonCertificateExpired, Problem: "Secret shop/client has a certificate that expired at 2026-06-01T01:00:00Z; renew it"}},
		"Early":   {reason: "One that is not valid yet should be, when it is.", secret: objecttest.TLSSecret(t, k), at: objecttest.SecretTime.Add(-2 * time.Hour), want: said{Reason: ir.ReasonCertificateExpired, Problem: "Secret shop/client has a certificate that is not valid before 2026-05-31T23:00:00Z", Due: objecttest.SecretTime.Add(-time.Hour)}},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			h := ParseSecret(name("client"), tc.secret, tc.at)
			got := said{Pair: h.Pair != nil, Client: h.Pair != nil && h.Pair.Client, Reason: h.Reason, Problem: h.Problem, Due: h.Due}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nHold(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestKeyPairPrintsNoKey, whoever prints it.
func TestKeyPairPrintsNoKey(t *testing.T) {
	h := ParseSecret(name("client"), objecttest.TLSSecret(t, objecttest.ECDSAKey(t)), objecttest.SecretTime)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d"} {
		if got := fmt.Sprintf(verb, h.Pair); got != "a certificate that is valid until 2026-06-01T01:00:00Z" {
			t.Errorf("%s prints %q", verb, got)
		}
		if got := fmt.Sprintf(verb, ir.NewSnapshot(ir.Contents{KeyPairs: map[types.NamespacedName]*ir.KeyPair{name("client"): h.Pair}})); strings.Contains(got, "PRIVATE") {
			t.Errorf("%s of a snapshot prints the key", verb)
		}
	}
}
