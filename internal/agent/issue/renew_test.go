// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package issue

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"
)

const day = 24 * time.Hour

// Issuers of Let's Encrypt: of production, of staging until 2025, and of staging since generation Y
// (https://letsencrypt.org/docs/staging-environment/).
var (
	issuerProduction = pkix.Name{Organization: []string{"Let's Encrypt"}, CommonName: "YE1"}
	issuerStaging    = pkix.Name{Organization: []string{"(STAGING) Let's Encrypt"}, CommonName: "(STAGING) Pseudo Plum E5"}
	issuerStagingY   = pkix.Name{Organization: []string{"Let's Encrypt"}, CommonName: "(STAGING) Artificial Amaranth YE1"}
)

// chain returns a certificate of an issuer.
func chain(t *testing.T, issuedBy pkix.Name, begin, end time.Time) []byte {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: begin, NotAfter: end, DNSNames: []string{"a.ts.net"}}
	issuer := &x509.Certificate{Subject: issuedBy}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestValidity(t *testing.T) {
	const (
		production = "https://acme-v02.api.letsencrypt.org/directory"
		staging    = "https://acme-staging-v02.api.letsencrypt.org/directory"
		other      = "https://ca.example.com/acme/directory"
	)
	at := time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		reason    string
		issuer    pkix.Name
		remaining time.Duration
		directory string
		want      time.Duration
	}{
		"Young":              {reason: "Tailscaled decides about a certificate that is not late.", issuer: issuerProduction, remaining: 60 * day},
		"Due":                {reason: "Tailscaled renews in the background at first.", issuer: issuerProduction, remaining: 29 * day},
		"Late":               {reason: "A certificate whose renewal is overdue is renewed in the foreground.", issuer: issuerProduction, remaining: 22 * day, want: 540 * time.Hour},
		"Expired":            {reason: "So is one that has expired.", issuer: issuerProduction, remaining: -day, want: 540 * time.Hour},
		"DirectoryUnknown":   {reason: "An image may set the directory, so that nothing is concluded from none.", issuer: issuerStaging, remaining: 60 * day},
		"Production":         {reason: "Let's Encrypt's certificate fits its directory.", issuer: issuerProduction, remaining: 60 * day, directory: production},
		"StagingProduction":  {reason: "A staging certificate does not fit production.", issuer: issuerStaging, remaining: 60 * day, directory: production, want: 60*day + time.Hour},
		"StagingOther":       {reason: "A staging certificate does not fit another directory.", issuer: issuerStaging, remaining: 60 * day, directory: other, want: 60*day + time.Hour},
		"Staging":            {reason: "A staging certificate fits staging.", issuer: issuerStaging, remaining: 60 * day, directory: staging},
		"StagingY":           {reason: "So does one of a later generation, which has the organization of production.", issuer: issuerStagingY, remaining: 60 * day, directory: staging},
		"StagingYProduction": {reason: "A later staging certificate does not fit production either.", issuer: issuerStagingY, remaining: 60 * day, directory: production, want: 60*day + time.Hour},
		"ProductionStaging":  {reason: "Another certificate does not fit staging.", issuer: issuerProduction, remaining: 60 * day, directory: staging, want: 60*day + time.Hour},
		"ProductionOther":    {reason: "Another directory may pass orders on to Let's Encrypt.", issuer: issuerProduction, remaining: 60 * day, directory: other},
		"DirectoryMalformed": {reason: "A directory that is no URL is not known.", issuer: issuerStaging, remaining: 60 * day, directory: "%"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := chain(t, tc.issuer, at.Add(tc.remaining-90*day), at.Add(tc.remaining))
			if got := validity(c, tc.directory, at); got != tc.want {
				t.Errorf("\n%s\nvalidity(...): want %v, got %v", tc.reason, tc.want, got)
			}
		})
	}
	for _, bad := range []string{"", "text", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"} {
		if got := validity([]byte(bad), staging, at); got != 0 {
			t.Errorf("validity(%q, ...): want 0, got %v", bad, got)
		}
	}
}
