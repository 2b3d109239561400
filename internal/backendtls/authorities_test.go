// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package backendtls

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// authorities returns certificates of authorities with so many bytes of extensions, in PEM.
func authorities(t *testing.T, count, size int) []string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for i := range count {
		c := &x509.Certificate{SerialNumber: big.NewInt(int64(i + 1)), IsCA: true, BasicConstraintsValid: true, SubjectKeyId: bytes.Repeat([]byte{1}, size)}
		der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	}
	return out
}

func TestAuthorities(t *testing.T) {
	small, large := authorities(t, 2, 20), authorities(t, 2, MaxAuthorities/2)
	broken := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("none")}))
	private := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("secret")}))
	cases := map[string]struct {
		reason  string
		texts   []string
		want    string
		problem string
	}{
		"One":     {reason: "A certificate should be kept.", texts: []string{small[0]}, want: small[0]},
		"Several": {reason: "Certificates should be kept in their order, each once, and nothing else.", texts: []string{"# a\n" + small[0] + private + small[1], small[0]}, want: small[0] + small[1]},
		"NoLine":  {reason: "A missing end of line should be added.", texts: []string{strings.TrimSpace(small[0]), small[1]}, want: small[0] + small[1]},
		"Nothing": {reason: "A ConfigMap without certificates should not be used.", texts: []string{"PEM"}, problem: "no certificate in PEM"},
		"NoKey":   {reason: "A ConfigMap without the key should not be used.", texts: []string{""}, problem: "has no key ca.crt"},
		"Broken":  {reason: "One that cannot be parsed should exclude the others.", texts: []string{small[0] + broken}, problem: "cannot be parsed"},
		"Large":   {reason: "Certificates beyond the limit should not be used.", texts: []string{large[0] + large[1]}, problem: "more than 64 KiB"},
		"Text":    {reason: "Nor should a text that is much longer.", texts: []string{strings.Repeat("x", maxText*MaxAuthorities) + small[0]}, problem: "more than 64 KiB"},
		"Sum":     {reason: "Nor should several ConfigMaps that are too large together.", texts: []string{large[0], large[1]}, problem: "together: it has more than 64 KiB"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var all []Authorities
			var problems strings.Builder
			for _, text := range tc.texts {
				a := ParseAuthorities(&corev1.ConfigMap{Data: map[string]string{CAKey: text}})
				problems.WriteString(a.Problem)
				all = append(all, a)
			}
			got := ""
			problem := problems.String()
			if problem == "" {
				got, problem = JoinAuthorities(all...)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if !strings.Contains(problem, tc.problem) || (problem == "") != (tc.problem == "") {
				t.Errorf("%s\nwant problem %q, got %q", tc.reason, tc.problem, problem)
			}
		})
	}
}

// TestAuthoritiesKey checks that the key of a ConfigMap is the one that Envoy Gateway takes.
func TestAuthoritiesKey(t *testing.T) {
	ca := authorities(t, 2, 20)
	cases := map[string]struct {
		reason  string
		data    map[string]string
		want    []string
		problem string
	}{
		"CA":    {reason: "ca.crt should take precedence.", data: map[string]string{CAKey: ca[0], tlsKey: ca[1], "a": ca[1]}, want: ca[:1]},
		"TLS":   {reason: "tls.crt should be next.", data: map[string]string{"a": ca[0], tlsKey: ca[1]}, want: ca[1:]},
		"Only":  {reason: "The only key should count, whatever its name.", data: map[string]string{"bundle.pem": ca[0]}, want: ca[:1]},
		"Two":   {reason: "One of several other keys should not.", data: map[string]string{"a.pem": ca[0], "b.pem": ca[1]}, problem: "has no key ca.crt; add it"},
		"None":  {reason: "A ConfigMap without data should be refused.", problem: "has no key ca.crt; add it"},
		"Text":  {reason: "A text without certificates should be refused.", data: map[string]string{"a": "text"}, problem: "cannot be used, under a: it has no certificate in PEM; add one"},
		"Large": {reason: "A text that is too long should be refused.", data: map[string]string{"a": ca[0] + strings.Repeat("x", 2*maxText*MaxAuthorities)}, problem: "cannot be used, under a: " + errTooLarge().Error()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ParseAuthorities(&corev1.ConfigMap{Data: tc.data})
			if diff := cmp.Diff(Authorities{Certificates: tc.want, Problem: tc.problem}, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestAuthoritiesMissing checks that a ConfigMap that does not exist says so.
func TestAuthoritiesMissing(t *testing.T) {
	if diff := cmp.Diff(Authorities{Problem: "does not exist; create it, with the key ca.crt"}, ParseAuthorities(nil)); diff != "" {
		t.Errorf("ParseAuthorities(nil): -want, +got:\n%s", diff)
	}
}
