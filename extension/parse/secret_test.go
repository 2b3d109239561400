// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
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
	garbage, foreign, long := objecttest.TLSSecret(t, k), objecttest.TLSSecret(t, k), objecttest.TLSSecret(t, k)
	leaf := garbage.Data[corev1.TLSCertKey]
	garbage.Data[corev1.TLSCertKey] = slices.Concat(leaf, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("garbage")}))
	foreign.Data[corev1.TLSCertKey] = slices.Concat([]byte("text\n"), leaf, []byte("-----BEGIN CERTIFICATE-----\n***\n-----END CERTIFICATE-----\ntext"))
	long.Data[corev1.TLSCertKey] = bytes.Repeat(leaf, 11)
	unparsed := said{Reason: ir.ReasonInvalidCertificate, Problem: "Secret shop/client has a certificate under tls.crt that cannot be parsed, or more than 10; correct the certificates of authorities after the first one"}
	cases := map[string]struct {
		reason string
		secret *corev1.Secret
		at     time.Time
		want   said
	}{
		"Client":  {reason: "A client's certificate can be presented until it expires.", secret: objecttest.TLSSecret(t, k, x509.ExtKeyUsageClientAuth), at: objecttest.SecretTime, want: said{Pair: true, Client: true, Due: objecttest.SecretTime.Add(time.Hour)}},
		"Any":     {reason: "A certificate without key usages is for clients too.", secret: objecttest.TLSSecret(t, k), at: objecttest.SecretTime, want: said{Pair: true, Client: true, Due: objecttest.SecretTime.Add(time.Hour)}},
		"Server":  {reason: "The backend decides whether it accepts a server's certificate.", secret: objecttest.TLSSecret(t, k, x509.ExtKeyUsageServerAuth), at: objecttest.SecretTime, want: said{Pair: true, Due: objecttest.SecretTime.Add(time.Hour)}},
		"Missing": {reason: "A missing Secret should be reported.", at: objecttest.SecretTime, want: said{Reason: ir.ReasonInvalidCertificate, Problem: "Secret shop/client does not exist; make it, or correct clientCertificateRef"}},
		"Opaque":  {reason: "A Secret of another type should be reported.", secret: opaque, at: objecttest.SecretTime, want: said{Reason: ir.ReasonInvalidCertificate, Problem: `Secret shop/client is of type "Opaque"; it must be of "kubernetes.io/tls"`}},
		"Mixed":   {reason: "The key of another certificate should be reported without its content.", secret: mixed, at: objecttest.SecretTime, want: said{Reason: ir.ReasonInvalidCertificate, Problem: "Secret shop/client has no certificate with its key under tls.crt and tls.key"}},
		"Empty":   {reason: "A Secret without a certificate should be reported.", secret: &corev1.Secret{Type: corev1.SecretTypeTLS}, at: objecttest.SecretTime, want: said{Reason: ir.ReasonInvalidCertificate, Problem: "Secret shop/client has no certificate with its key under tls.crt and tls.key"}},
		"Edwards": {reason: "A key that Envoy refuses should be reported: Envoy would refuse other secrets with it.", secret: objecttest.TLSSecret(t, edwards), at: objecttest.SecretTime, want: said{Reason: ir.ReasonInvalidCertificate, Problem: "Secret shop/client has a key that Envoy does not take; make it one of RSA with 2048 bits or more, or of ECDSA"}},
		"Short":   {reason: "A key that is too short should be reported, because Envoy refuses it.", secret: objecttest.TLSSecret(t, short), at: objecttest.SecretTime, want: said{Reason: ir.ReasonInvalidCertificate, Problem: "Secret shop/client has a key that Envoy does not take; make it one of RSA with 2048 bits or more, or of ECDSA"}},
		"Garbage": {reason: "A block that is no certificate should be reported: Envoy would refuse other secrets with it.", secret: garbage, at: objecttest.SecretTime, want: unparsed},
		"Foreign": {reason: "Text that is no block should be dropped: Envoy gets only what was parsed.", secret: foreign, at: objecttest.SecretTime, want: said{Pair: true, Client: true, Due: objecttest.SecretTime.Add(time.Hour)}},
		"Long":    {reason: "A chain without end should be reported.", secret: long, at: objecttest.SecretTime, want: unparsed},
		"Expired": {reason: "An expired certificate should be reported with its expiry time.", secret: objecttest.TLSSecret(t, k), at: objecttest.SecretTime.Add(time.Hour), want: said{Reason: ir.ReasonCertificateExpired, Problem: "Secret shop/client has a certificate that expired at 2026-06-01T01:00:00Z; renew it"}},
		"Early":   {reason: "A certificate that is not valid yet should be reported, and read again when it is valid.", secret: objecttest.TLSSecret(t, k), at: objecttest.SecretTime.Add(-2 * time.Hour), want: said{Reason: ir.ReasonCertificateExpired, Problem: "Secret shop/client has a certificate that is not valid before 2026-05-31T23:00:00Z", Due: objecttest.SecretTime.Add(-time.Hour)}},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			h := ParseSecret(name("client"), tc.secret, tc.at)
			got := said{Pair: h.Pair != nil, Client: h.Pair != nil && h.Pair.Client, Reason: h.Reason, Problem: h.Problem, Due: h.Due}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nParseSecret(...): -want, +got:\n%s", tc.reason, diff)
			}
			if h.Pair == nil {
				return
			}
			for rest := h.Pair.Chain; len(rest) > 0; {
				var b *pem.Block
				if b, rest = pem.Decode(rest); b == nil {
					t.Fatalf("%s\nthe chain has something other than certificates", tc.reason)
				}
				if _, err := x509.ParseCertificate(b.Bytes); err != nil {
					t.Errorf("%s\nthe chain has a certificate that cannot be parsed: %v", tc.reason, err)
				}
			}
		})
	}
}

// TestKeyPairPrintsNoKey checks that no formatting verb prints the key.
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
