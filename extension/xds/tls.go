// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

const (
	// systemRoots is the file in Envoy's image that Envoy Gateway itself uses.
	systemRoots = "/etc/ssl/certs/ca-certificates.crt"

	// socketMatch is the metadata of an endpoint by which Envoy chooses its socket.
	socketMatch = "envoy.transport_socket_match"

	// remoteKey is set in the metadata of endpoints in other clusters.
	remoteKey = "tailscale-remote"
)

// speakTLS makes a cluster speak TLS to endpoints, and verify the server's name. A policy's TLS
// settings stay. remote are the settings for endpoints in other clusters; nil means the same.
func speakTLS(c *clusterv3.Cluster, t, remote *ir.UpstreamTLS) error {
	if t != nil && Plain(c) {
		if t.ServerName == "" {
			if err := followName(c); err != nil {
				return err
			}
		}
		s, err := tlsSocket(t)
		if err != nil {
			return err
		}
		if err := encloseSocket(c, s); err != nil {
			return err
		}
	}
	if remote == nil {
		return nil
	}
	// The socket sends no PROXY protocol header: it would precede TLS, and proxies of other
	// clusters, which terminate TLS, do not read it.
	s, err := tlsSocket(remote)
	c.TransportSocketMatches = []*clusterv3.Cluster_TransportSocketMatch{{
		Name:            remoteKey,
		Match:           remoteMark(),
		TransportSocket: s,
	}}
	return err
}

// remoteMark returns the metadata of endpoints in other clusters.
func remoteMark() *structpb.Struct {
	return &structpb.Struct{Fields: map[string]*structpb.Value{remoteKey: structpb.NewBoolValue(true)}}
}

// tlsSocket returns a socket with these TLS settings.
func tlsSocket(t *ir.UpstreamTLS) (*corev3.TransportSocket, error) {
	validation := &tlsv3.CertificateValidationContext{MatchTypedSubjectAltNames: altNames(t)}
	common := &tlsv3.CommonTlsContext{
		// Envoy's default for clients ends at 1.2. These are Envoy Gateway's
		// (envoyproxy/gateway internal/gatewayapi/backendtlspolicy.go).
		TlsParams: &tlsv3.TlsParameters{
			TlsMinimumProtocolVersion: tlsv3.TlsParameters_TLSv1_2,
			TlsMaximumProtocolVersion: tlsv3.TlsParameters_TLSv1_3,
		},
	}
	if t.CA == "" {
		validation.TrustedCa = &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: systemRoots}}
		common.ValidationContextType = &tlsv3.CommonTlsContext_ValidationContext{ValidationContext: validation}
	} else {
		common.ValidationContextType = &tlsv3.CommonTlsContext_CombinedValidationContext{CombinedValidationContext: &tlsv3.CommonTlsContext_CombinedCertificateValidationContext{
			DefaultValidationContext:         validation,
			ValidationContextSdsSecretConfig: sdsSecret(authorityName(t.CA)),
		}}
	}
	a, err := packAny(&tlsv3.UpstreamTlsContext{Sni: t.ServerName, CommonTlsContext: common})
	return &corev3.TransportSocket{
		Name:       "envoy.transport_sockets.tls",
		ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: a},
	}, errors.Wrap(err, "cannot marshal TLS context")
}

// altNames returns the names of which a certificate must have one. None means the name in the
// request.
func altNames(t *ir.UpstreamTLS) []*tlsv3.SubjectAltNameMatcher {
	names := t.AltNames
	if len(names) == 0 && t.ServerName != "" {
		names = []ir.AltName{{Value: t.ServerName}}
	}
	out := make([]*tlsv3.SubjectAltNameMatcher, 0, len(names))
	for _, n := range names {
		sanType := tlsv3.SubjectAltNameMatcher_DNS
		if n.URI {
			sanType = tlsv3.SubjectAltNameMatcher_URI
		}
		out = append(out, &tlsv3.SubjectAltNameMatcher{
			SanType: sanType,
			Matcher: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: n.Value}},
		})
	}
	return out
}
