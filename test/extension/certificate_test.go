// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package extension_test

import (
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"

	certutil "k8s.io/client-go/util/cert"
)

// edsName is what the endpoint server's certificate is for. As in a cluster, nobody
// dials it: Envoys dial an address, which no certificate is made for.
const edsName = "tailscale-gateway-extension-eds.envoy-gateway-system.svc"

// edsCertificate writes the endpoint server's certificate, as a Secret is mounted, and
// returns the folder.
func edsCertificate(t *testing.T) string {
	t.Helper()
	chain, key, err := certutil.GenerateSelfSignedCertKey(edsName, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	// The server's own, and its authority's.
	_, ca := pem.Decode(chain)
	dir := t.TempDir()
	for name, content := range map[string][]byte{"tls.crt": chain, "tls.key": key, "ca.crt": ca} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
