// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

func TestPresent(t *testing.T) {
	ours := &ir.UpstreamTLS{ServerName: "api.example.com"}
	cases := map[string]struct {
		reason string
		tls    *ir.UpstreamTLS
		remote *ir.UpstreamTLS
		want   []string
	}{
		"TLS":    {reason: "The cluster should present the certificate in TLS.", tls: ours, want: []string{"api.example.com secret"}},
		"Remote": {reason: "It should present the certificate to remote endpoints too.", tls: ours, remote: &ir.UpstreamTLS{ServerName: "proxy.example.com"}, want: []string{"api.example.com secret", "proxy.example.com secret"}},
		"Plain":  {reason: "A cluster without TLS cannot present a certificate."},
		"Partly": {reason: "Endpoints without TLS would get requests without a certificate.", remote: ours},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &clusterv3.Cluster{Name: "c"}
			if err := speakTLS(c, tc.tls, tc.remote); err != nil {
				t.Fatal(err)
			}
			// The second certificate replaces the first.
			for range 2 {
				out, err := Present(c, "other", "secret")
				if err != nil {
					t.Fatal(err)
				}
				if (out != nil) != (tc.want != nil) {
					t.Fatalf("%s\nPresent(...): %v", tc.reason, out)
				}
				if out == nil {
					return
				}
				if diff := cmp.Diff(tc.want, presented(t, out)); diff != "" || out.GetName() != "other" {
					t.Errorf("%s\nPresent(...) of %s: -want, +got:\n%s", tc.reason, out.GetName(), diff)
				}
				c = out
			}
		})
	}
}

// presented returns the names and the secrets of a cluster's sockets.
func presented(t *testing.T, c *clusterv3.Cluster) []string {
	t.Helper()
	var out []string
	for _, s := range append([]*corev3.TransportSocket{c.GetTransportSocket()}, socketsOf(c)...) {
		tlsContext := &tlsv3.UpstreamTlsContext{}
		if err := s.GetTypedConfig().UnmarshalTo(tlsContext); err != nil {
			t.Fatal(err)
		}
		names := []string{tlsContext.GetSni()}
		for _, n := range tlsContext.GetCommonTlsContext().GetTlsCertificateSdsSecretConfigs() {
			names = append(names, n.GetName())
		}
		out = append(out, strings.Join(names, " "))
	}
	return out
}

func socketsOf(c *clusterv3.Cluster) []*corev3.TransportSocket {
	var out []*corev3.TransportSocket
	for _, m := range c.GetTransportSocketMatches() {
		out = append(out, m.GetTransportSocket())
	}
	return out
}
