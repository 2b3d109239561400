// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// certificate writes files of a self-signed certificate and of its key.
func certificate(t *testing.T, hosts ...string) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: hosts[0]}, DNSNames: hosts,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, b []byte) string {
		p := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(p, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	return write("tls.crt", "CERTIFICATE", der), write("tls.key", "PRIVATE KEY", secret)
}

// terminatesTLS serves the examples of TLS, with a certificate from a Secret, and of HTTP.
func terminatesTLS(t *testing.T) {
	domain := strings.TrimSuffix(strings.TrimPrefix(vipURL(t, "web"), "http://web."), "/")
	kubectl(t, "apply", "-f", "examples/tls.yaml", "-f", "examples/http.yaml")

	// The status reports a missing certificate, and the proxy offers nothing without it.
	eventually(t, 2*time.Minute, "message of the missing Secret", func() string {
		out := kubectl(t, "get", "machines", "-n", namespace, "-o=jsonpath={.items[*].status.agent.services[*].message}")
		if !strings.Contains(out, "web-tls") {
			return "no agent names the Secret web-tls: " + out
		}
		return ""
	})
	cert, key := certificate(t, "secure."+domain)
	kubectl(t, "create", "secret", "tls", "web-tls", "-n", namespace, "--cert="+cert, "--key="+key)

	eventually(t, 2*time.Minute, "answer over TLS", func() string {
		out, err := labOutput(t, "tailnet-curl", "--timeout=5s", "--cacert="+cert, "https://secure."+domain+"/")
		if err != nil || !strings.HasPrefix(out, "web-") {
			return out
		}
		return ""
	})
	for _, u := range []string{"http://secure." + domain + "/", "http://whoami." + domain + "/"} {
		eventually(t, time.Minute, "answer of "+u, func() string {
			out, err := curl(t, u)
			if err != nil {
				return err.Error()
			}
			if !strings.HasPrefix(out, "web-") {
				return "the response is " + out
			}
			return ""
		})
	}
	kubectl(t, "delete", "-f", "examples/tls.yaml", "-f", "examples/http.yaml", "--timeout=3m")
	kubectl(t, "delete", "secret", "web-tls", "-n", namespace)
	eventually(t, 3*time.Minute, "proxies of the examples gone", func() string {
		if remaining := kubectl(t, "get", "tailscaleendpoints,machines", "-n", namespace, "-o=name"); strings.Contains(remaining, "secure") || strings.Contains(remaining, "whoami") {
			return remaining
		}
		return ""
	})
}
