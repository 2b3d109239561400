// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package authorities

import (
	"crypto/x509"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "golang.org/x/crypto/x509roots/fallback" // As in the binaries.
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// emptyEnv names the variable that makes this test binary the process of a pod, whose image has no
// certificates.
const emptyEnv = "TEST_AUTHORITIES_FILE"

func write(t *testing.T, content string) string {
	t.Helper()
	f := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(f, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}

// private returns the certificate of a server that no public authority has signed.
func private(t *testing.T) *x509.Certificate {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	t.Cleanup(s.Close)
	return s.Certificate()
}

// TestPool checks that a pool has the authorities of the file.
func TestPool(t *testing.T) {
	cert := private(t)
	encoded := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}))
	cases := map[string]struct {
		reason  string
		file    string
		trusted bool
		fails   string
	}{
		"None":    {reason: "Without a file the system's authorities count, which nil means."},
		"One":     {reason: "The authority of the file is trusted.", file: write(t, encoded), trusted: true},
		"Comment": {reason: "A bundle may have comments.", file: write(t, "# Example CA\n"+encoded), trusted: true},
		"Missing": {reason: "A misspelt path must not be ignored.", file: filepath.Join(t.TempDir(), "ca.crt"), fails: "cannot read certificate authorities"},
		"Empty":   {reason: "A file without certificates adds nothing.", file: write(t, "no certificate"), fails: "has no certificate"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pool, err := Pool(tc.file)
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) {
					t.Errorf("%s: want an error with %q, got %v", tc.reason, tc.fails, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if (pool == nil) != (tc.file == "") {
				t.Errorf("%s: got the pool %v", tc.reason, pool)
			}
			if _, err := cert.Verify(x509.VerifyOptions{Roots: pool}); (err == nil) != tc.trusted {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

// TestFallback checks in a process without system certificates, as in our images, that the embedded
// authorities stay.
func TestFallback(t *testing.T) {
	if f := os.Getenv(emptyEnv); f != "" {
		keepsEmbedded(t, f)
		return
	}
	f := write(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: private(t).Raw})))
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFallback$")
	// Go reads its authorities from nowhere else.
	cmd.Env = append(os.Environ(), emptyEnv+"="+f, "SSL_CERT_FILE="+filepath.Join(t.TempDir(), "none"), "SSL_CERT_DIR="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func keepsEmbedded(t *testing.T, file string) {
	t.Helper()
	pool, err := Pool(file)
	if err != nil {
		t.Fatal(err)
	}
	embedded := 0
	for root := range bundle.Roots() {
		cert, err := x509.ParseCertificate(root.Certificate)
		if err != nil {
			t.Fatal(err)
		}
		if root.Constraint != nil {
			continue
		}
		embedded++
		if _, err := cert.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: cert.NotBefore, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
			t.Errorf("%s is not trusted: %v", cert.Subject, err)
		}
	}
	if embedded == 0 {
		t.Error("there are no embedded authorities")
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(b)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cert.Verify(x509.VerifyOptions{Roots: pool}); err != nil {
		t.Errorf("the authority of the file is not trusted: %v", err)
	}
}

// TestBinaries checks that the binaries of images that verify certificates of others embed authorities,
// because their images have none.
func TestBinaries(t *testing.T) {
	for _, main := range []string{"./cmd/agent", "./cmd/provider", "./extension"} {
		t.Run(main, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", main)
			cmd.Dir = filepath.Join("..", "..")
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(strings.Fields(string(out)), "golang.org/x/crypto/x509roots/fallback") {
				t.Errorf("%s imports no x509roots/fallback: it would trust nobody in its image", main)
			}
		})
	}
}
