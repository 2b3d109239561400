// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"slices"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// proxied is a cluster as Envoy Gateway makes it for a BackendTrafficPolicy with proxyProtocol.
const proxied = `
name: a
type: EDS
transportSocket:
  name: envoy.transport_sockets.upstream_proxy_protocol
  typedConfig:
    '@type': type.googleapis.com/envoy.extensions.transport_sockets.proxy_protocol.v3.ProxyProtocolUpstreamTransport
    config: {version: V2}
    transportSocket:
      name: envoy.transport_sockets.raw_buffer
      typedConfig: {'@type': type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer}
`

func TestProxyProtocol(t *testing.T) {
	const wrapped = `
transportSocket:
  name: envoy.transport_sockets.upstream_proxy_protocol
  typedConfig:
    '@type': type.googleapis.com/envoy.extensions.transport_sockets.proxy_protocol.v3.ProxyProtocolUpstreamTransport
    config: {version: V2}
    transportSocket:
      name: envoy.transport_sockets.tls
      typedConfig:
        '@type': type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
        sni: web.example.com
        commonTlsContext:
          tlsParams: {tlsMinimumProtocolVersion: TLSv1_2, tlsMaximumProtocolVersion: TLSv1_3}
          validationContext:
            trustedCa: {filename: /etc/ssl/certs/ca-certificates.crt}
            matchTypedSubjectAltNames: [{sanType: DNS, matcher: {exact: web.example.com}}]
`
	cases := map[string]struct {
		reason string
		tls    *ir.UpstreamTLS
		want   string
		plain  bool
	}{
		"Plaintext": {
			reason: "Without TLS the socket should stay as Envoy Gateway made it, and need no certificate.",
			want:   proxied[len("\nname: a\ntype: EDS"):],
			plain:  true,
		},
		"TLS": {
			reason: "The TLS socket should be inside the socket that sends the header, because the header precedes TLS.",
			tls:    &ir.UpstreamTLS{ServerName: "web.example.com"},
			want:   wrapped,
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			o := ClusterOptions{Name: "own", List: "l", Source: XDSTP(), Shape: &ir.Shape{TLS: tc.tls}}
			got, err := Cluster(read(t, proxied), o)
			if err != nil {
				t.Fatal(err)
			}
			want, sockets := "name: own\n"+tc.want, &clusterv3.Cluster{Name: got.GetName(), TransportSocket: got.GetTransportSocket()}
			if diff := cmp.Diff(show(t, read(t, want)), show(t, sockets)); diff != "" {
				t.Errorf("\n%s\nCluster(...): -want, +got:\n%s", tc.reason, diff)
			}
			if err := got.ValidateAll(); err != nil {
				t.Errorf("\n%s\nEnvoy Gateway refuses it: %v", tc.reason, err)
			}
			if Plain(got) != tc.plain {
				t.Errorf("\n%s\nPlain(...): want %t", tc.reason, tc.plain)
			}
			second, err := Cluster(got, o)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(show(t, got), show(t, second)); diff != "" {
				t.Errorf("\n%s\nCluster(Cluster(...)): -want, +got:\n%s", tc.reason, diff)
			}
			cluster, err := Present(got, "with", "secret")
			if err != nil {
				t.Fatal(err)
			}
			if presents := cluster != nil && slices.Contains(SecretsOf(cluster), "secret"); presents == tc.plain {
				t.Errorf("\n%s\nPresent(...): presents a certificate: %t", tc.reason, presents)
			}
		})
	}
}
