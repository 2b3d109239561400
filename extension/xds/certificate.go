// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

const (
	// certificatePrefix begins the names of secrets with client certificates.
	certificatePrefix = ir.OursPrefix + "client-certificate/"

	// withheldKey is the key of the original cluster in a withheld cluster's metadata.
	withheldKey = "tailscale-gateway.withheld"
)

// CertificateName returns the name of Envoy's secret for a Kubernetes Secret.
func CertificateName(n types.NamespacedName) string {
	return certificatePrefix + n.Namespace + "/" + n.Name
}

// Certificate returns Envoy's secret for a key pair. A renewed pair replaces it in place:
// connections stay open, and later ones present the new certificate.
func Certificate(n types.NamespacedName, p *ir.KeyPair) *tlsv3.Secret {
	bytes := func(b []byte) *corev3.DataSource {
		return &corev3.DataSource{Specifier: &corev3.DataSource_InlineBytes{InlineBytes: b}}
	}
	return &tlsv3.Secret{Name: CertificateName(n), Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{
		CertificateChain: bytes(p.Chain), PrivateKey: bytes(p.Key()),
	}}}
}

// SecretsOf returns the names of the secrets whose certificates a cluster presents or trusts.
func SecretsOf(c *clusterv3.Cluster) []string {
	sockets := []*corev3.TransportSocket{c.GetTransportSocket()}
	for _, m := range c.GetTransportSocketMatches() {
		sockets = append(sockets, m.GetTransportSocket())
	}
	var out []string
	for _, s := range sockets {
		if s == nil {
			continue
		}
		// A socket that cannot be read names no secret of this package.
		_, _ = editTLS(proto.CloneOf(s), func(t *tlsv3.UpstreamTlsContext) {
			common := t.GetCommonTlsContext()
			if n := common.GetCombinedValidationContext().GetValidationContextSdsSecretConfig().GetName(); n != "" {
				out = append(out, n)
			}
			for _, s := range common.GetTlsCertificateSdsSecretConfigs() {
				out = append(out, s.GetName())
			}
		})
	}
	return out
}

// Withhold returns a cluster without endpoints, whose requests are answered with 503. The original
// stays in its metadata, which Envoy ignores.
func Withhold(c *clusterv3.Cluster) (*clusterv3.Cluster, error) {
	a, err := packAny(c)
	return &clusterv3.Cluster{
		Name:                 c.GetName(),
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
		ConnectTimeout:       c.GetConnectTimeout(),
		Metadata:             &corev3.Metadata{TypedFilterMetadata: map[string]*anypb.Any{withheldKey: a}},
	}, errors.Wrap(err, "cannot marshal cluster")
}

// Withheld returns the original of a withheld cluster. It returns any other cluster as it is.
func Withheld(c *clusterv3.Cluster) *clusterv3.Cluster {
	a := c.GetMetadata().GetTypedFilterMetadata()[withheldKey]
	original := &clusterv3.Cluster{}
	if a == nil || a.UnmarshalTo(original) != nil {
		return c
	}
	return original
}

// Present returns a cluster that presents the certificate of a secret to all endpoints, in place of
// any other. Nil if it speaks no TLS to some of them.
func Present(c *clusterv3.Cluster, name, secret string) (*clusterv3.Cluster, error) {
	if c.GetTransportSocket() == nil {
		return nil, nil
	}
	return editCertificates(c, name, func(t *tlsv3.CommonTlsContext) {
		t.TlsCertificates = nil
		t.TlsCertificateSdsSecretConfigs = []*tlsv3.SdsSecretConfig{sdsSecret(secret)}
	})
}

// Unpresent returns a cluster that presents no certificate, as before Present.
func Unpresent(c *clusterv3.Cluster, name string) (*clusterv3.Cluster, error) {
	return editCertificates(c, name, func(t *tlsv3.CommonTlsContext) { t.TlsCertificateSdsSecretConfigs = nil })
}

// editCertificates returns a copy of a cluster with other certificates for all endpoints. Nil if it
// speaks no TLS to some of them.
func editCertificates(c *clusterv3.Cluster, name string, edit func(t *tlsv3.CommonTlsContext)) (*clusterv3.Cluster, error) {
	out := proto.CloneOf(c)
	out.Name = name
	sockets := []*corev3.TransportSocket{out.GetTransportSocket()}
	for _, m := range out.GetTransportSocketMatches() {
		sockets = append(sockets, m.GetTransportSocket())
	}
	for _, s := range sockets {
		ok, err := editTLS(s, func(t *tlsv3.UpstreamTlsContext) {
			if t.CommonTlsContext == nil {
				t.CommonTlsContext = &tlsv3.CommonTlsContext{}
			}
			edit(t.CommonTlsContext)
		})
		if !ok || err != nil {
			return nil, err
		}
	}
	return out, nil
}
