// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// TestChartCertificates verifies the certificates of the chart as Envoy Gateway and Envoy do.
func TestChartCertificates(t *testing.T) {
	rendered := render(t)
	secrets := objects[corev1.Secret](t, rendered, "Secret")
	server, ca := secrets[chartName+"-tls"], secrets[chartName+"-ca"]
	if diff := cmp.Diff(server.Data["ca.crt"], ca.Data["tls.crt"]); diff != "" {
		t.Errorf("Envoys and Envoy Gateway trust different authorities:\n%s", diff)
	}
	if len(ca.Data) != 1 {
		t.Errorf("the authority's Secret has more than its certificate")
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca.Data["tls.crt"]) {
		t.Fatal("the authority's Secret has no certificate")
	}
	block, _ := pem.Decode(server.Data["tls.crt"])
	if block == nil {
		t.Fatal("the server's Secret has no certificate")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		// As cluster/envoy-gateway/values.yaml names it.
		chartName + ".envoy-gateway-system.svc.cluster.local",
		// As the extension's flags name it for Envoys.
		strings.TrimPrefix(arg(t, rendered, "--eds-server-name="), "--eds-server-name="),
	} {
		if _, err := cert.Verify(x509.VerifyOptions{DNSName: name, Roots: roots}); err != nil {
			t.Errorf("the server's certificate is refused under the name %s: %v", name, err)
		}
	}

	// The servers verify clients.
	for secret, flag := range map[string]string{chartName + "-client": "--hooks-client-name=", chartName + "-envoy": "--eds-client-name="} {
		data := secrets[secret].Data
		pair, err := tls.X509KeyPair(data["tls.crt"], data["tls.key"])
		if err != nil {
			t.Errorf("Secret %s: %v", secret, err)
			continue
		}
		leaf, err := x509.ParseCertificate(pair.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		clients := x509.NewCertPool()
		clients.AppendCertsFromPEM(data["ca.crt"])
		of := x509.VerifyOptions{DNSName: strings.TrimPrefix(arg(t, rendered, flag), flag), Roots: clients, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
		if _, err := leaf.Verify(of); err != nil {
			t.Errorf("the certificate of Secret %s is refused: %v", secret, err)
		}
		if len(data["tls.crt"])+len(data["tls.key"]) > 1200 {
			t.Errorf("Secret %s has %d bytes, and each cluster has a copy for Envoys", secret, len(data["tls.crt"])+len(data["tls.key"]))
		}
	}
}
