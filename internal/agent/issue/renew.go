// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package issue

import (
	"crypto/x509"
	"encoding/pem"
	"net/url"
	"strings"
	"time"
)

// lateFraction is the part of a certificate's lifetime that is left when it is late. Tailscaled
// renews when a third is left, or when the certificate authority suggests it (tailscale.com
// feature/acme, shouldStartDomainRenewal).
const lateFraction = 4

// Let's Encrypt's staging environment: the host of its directory, and how the common names of its
// issuers begin (https://letsencrypt.org/docs/staging-environment/). Their organization does not show it:
// certificates of 2026 have the issuer "C=US, O=Let's Encrypt, CN=(STAGING) Artificial Amaranth YE1".
const (
	hostStaging   = "acme-staging-v02.api.letsencrypt.org"
	prefixStaging = "(STAGING) "
)

// validity returns how long tailscaled must guarantee that its certificate is valid. Zero leaves
// the time of the renewal to tailscaled. It is more than is left of a certificate that is late, or
// strange: tailscaled keeps a strange one until its renewal, except one that it cannot verify while
// the directory is Let's Encrypt's production (feature/acme, validateLeaf).
func validity(chain []byte, directory string, at time.Time) time.Duration {
	c := leaf(chain)
	if c == nil {
		return 0
	}
	late := c.NotAfter.Sub(c.NotBefore) / lateFraction
	remaining := c.NotAfter.Sub(at)
	switch {
	case remaining < late:
		return late
	case strange(c, directory):
		return remaining + time.Hour
	}
	return 0
}

// strange reports whether a certificate is of Let's Encrypt's staging environment and the directory
// is not, or the other way around. The certificates of other directories cannot be distinguished: one
// may pass orders on to Let's Encrypt.
func strange(c *x509.Certificate, directory string) bool {
	u, err := url.Parse(directory)
	if c == nil || err != nil || directory == "" {
		return false
	}
	return (u.Hostname() == hostStaging) != strings.HasPrefix(c.Issuer.CommonName, prefixStaging)
}

// leaf returns the first certificate of a chain in PEM, or nil if it cannot be read.
func leaf(chain []byte) *x509.Certificate {
	block, _ := pem.Decode(chain)
	if block == nil {
		return nil
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil
	}
	return c
}
