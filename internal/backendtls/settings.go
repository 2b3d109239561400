// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package backendtls

import (
	"crypto/tls"
	"crypto/x509"
)

// Settings are those of the connections to a backend. The zero value stands for connections without
// TLS.
type Settings struct {
	// ServerName is the name or address that the certificate must be for. A name is also sent to the
	// backend.
	ServerName string `json:"serverName,omitempty"`

	// Authorities are the trusted certificates in PEM. Empty means those of the system.
	Authorities string `json:"authorities,omitempty"`
}

// Config returns the configuration for connections with some protocols, such as h2. They fail unless
// the backend has a valid certificate for ServerName: nothing switches the verification off.
func (s Settings) Config(protocols ...string) *tls.Config {
	out := &tls.Config{ServerName: s.ServerName, MinVersion: tls.VersionTLS12, NextProtos: protocols}
	if s.Authorities != "" {
		// Without a certificate that can be parsed, the pool trusts none. Nil would trust the system's.
		out.RootCAs = x509.NewCertPool()
		out.RootCAs.AppendCertsFromPEM([]byte(s.Authorities))
	}
	return out
}
