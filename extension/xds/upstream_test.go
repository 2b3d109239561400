// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
)

func TestSpeakTLS(t *testing.T) {
	follow := &httpv3.HttpProtocolOptions{
		UpstreamHttpProtocolOptions: &corev3.UpstreamHttpProtocolOptions{AutoSni: true, AutoSanValidation: true},
		UpstreamProtocolOptions: explicit(&httpv3.HttpProtocolOptions_ExplicitHttpConfig{
			ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_HttpProtocolOptions{HttpProtocolOptions: &corev3.Http1ProtocolOptions{}},
		}),
	}
	cases := map[string]struct {
		reason string
		tls    *index.UpstreamTLS
		sni    string
		ca     *corev3.DataSource
		names  int
		http   *httpv3.HttpProtocolOptions
	}{
		"Name": {
			reason: "A server's name is asked for and checked, by what the system trusts.",
			tls:    &index.UpstreamTLS{ServerName: "api.example.com"},
			sni:    "api.example.com",
			ca:     &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: systemRoots}},
			names:  1,
		},
		"CA": {
			reason: "A bundle of one's own stands instead of what the system trusts.",
			tls:    &index.UpstreamTLS{ServerName: "api.example.com", CA: "PEM"},
			sni:    "api.example.com",
			ca:     &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: "PEM"}},
			names:  1,
		},
		"AnyName": {
			reason: "Without a name the request's is asked for and checked: never none.",
			tls:    &index.UpstreamTLS{},
			ca:     &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: systemRoots}},
			http:   follow,
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			c := &clusterv3.Cluster{Name: "c"}
			if err := speakTLS(c, tc.tls); err != nil {
				t.Fatal(err)
			}
			if err := c.ValidateAll(); err != nil {
				t.Errorf("%s\nEnvoy Gateway refuses it: %v", tc.reason, err)
			}
			got := &tlsv3.UpstreamTlsContext{}
			if err := c.GetTransportSocket().GetTypedConfig().UnmarshalTo(got); err != nil {
				t.Fatal(err)
			}
			v := got.GetCommonTlsContext().GetValidationContext()
			if diff := cmp.Diff(tc.ca, v.GetTrustedCa(), protocmp.Transform()); diff != "" {
				t.Errorf("%s\ncertificates: -want, +got\n%s", tc.reason, diff)
			}
			if got.GetSni() != tc.sni || len(v.GetMatchTypedSubjectAltNames()) != tc.names {
				t.Errorf("%s\nwant SNI %q and %d names, got %q and %v", tc.reason, tc.sni, tc.names, got.GetSni(), v.GetMatchTypedSubjectAltNames())
			}
			var options *httpv3.HttpProtocolOptions
			if a := c.GetTypedExtensionProtocolOptions()[httpOptions]; a != nil {
				options = &httpv3.HttpProtocolOptions{}
				if err := a.UnmarshalTo(options); err != nil {
					t.Fatal(err)
				}
				if err := options.ValidateAll(); err != nil {
					t.Errorf("%s\nEnvoy refuses it: %v", tc.reason, err)
				}
			}
			if diff := cmp.Diff(tc.http, options, protocmp.Transform()); diff != "" {
				t.Errorf("%s\nHTTP options: -want, +got\n%s", tc.reason, diff)
			}
		})
	}
}
