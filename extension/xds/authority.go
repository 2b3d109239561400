// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// authorityPrefix begins the names of secrets with the authorities that Envoy trusts. Clusters name
// such a secret in place of a copy of the authorities: a target has a cluster for each port and
// protocol, and a copy of each for each policy's certificate.
const authorityPrefix = ir.OursPrefix + "authorities/"

// IsSecret reports whether a secret has the name of one of this package.
func IsSecret(name string) bool {
	return strings.HasPrefix(name, certificatePrefix) || strings.HasPrefix(name, authorityPrefix)
}

// authorityName returns the name of the secret with these authorities, in PEM. It is that of the
// content: other authorities are other settings of a cluster, which Envoy replaces together with it.
func authorityName(ca string) string {
	h := sha256.Sum256([]byte(ca))
	return authorityPrefix + hex.EncodeToString(h[:16])
}

// Authorities returns the secrets that the clusters of a target name.
func Authorities(s *ir.Shape) []*tlsv3.Secret {
	var out []*tlsv3.Secret
	for _, t := range []*ir.UpstreamTLS{s.TLS, s.RemoteTLS} {
		if t == nil || t.CA == "" {
			continue
		}
		out = append(out, &tlsv3.Secret{Name: authorityName(t.CA), Type: &tlsv3.Secret_ValidationContext{ValidationContext: &tlsv3.CertificateValidationContext{
			TrustedCa: &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: t.CA}},
		}}})
	}
	return out
}

// sdsSecret returns a reference to a secret that Envoy Gateway serves.
func sdsSecret(name string) *tlsv3.SdsSecretConfig {
	return &tlsv3.SdsSecretConfig{
		Name: name,
		SdsConfig: &corev3.ConfigSource{
			ResourceApiVersion:    corev3.ApiVersion_V3,
			ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
		},
	}
}
