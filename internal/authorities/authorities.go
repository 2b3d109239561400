// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package authorities adds certificate authorities to those of the system, for clusters whose
// connections end at a proxy that inspects TLS, or whose servers have private certificates.
package authorities

import (
	"crypto/x509"
	"os"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// Pool returns the authorities of the system together with those in a PEM file, for RootCAs of a
// tls.Config. Without a file it returns nil, which means those of the system. Our images have no
// authorities: there, the fallback that the binary imports takes the place of the system's
// (crypto/x509, SetFallbackRoots). SSL_CERT_FILE would replace that fallback instead of adding to it.
func Pool(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, errors.Wrap(err, "cannot read certificate authorities")
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, errors.Wrap(err, "cannot read the system's certificate authorities")
	}
	if !pool.AppendCertsFromPEM(b) {
		return nil, errors.Errorf("%s has no certificate in the PEM format", file)
	}
	return pool, nil
}
