// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"slices"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
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
		tls    *ir.UpstreamTLS
		sni    string
		ca     *corev3.DataSource
		names  []string
		http   *httpv3.HttpProtocolOptions

		// secret reports that the authorities are in a secret.
		secret bool
	}{
		"Name": {
			reason: "Envoy should request the server's name, and verify it by the system's authorities.",
			tls:    &ir.UpstreamTLS{ServerName: "api.example.com"},
			sni:    "api.example.com",
			ca:     &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: systemRoots}},
			names:  []string{"DNS api.example.com"},
		},
		"CA": {
			reason: "A bundle should replace the system's authorities.",
			tls:    &ir.UpstreamTLS{ServerName: "api.example.com", CA: "PEM"},
			sni:    "api.example.com",
			secret: true,
			names:  []string{"DNS api.example.com"},
		},
		"AltNames": {
			reason: "Other names should replace the server's in verification, but not in the request.",
			tls:    &ir.UpstreamTLS{ServerName: "api.example.com", AltNames: []ir.AltName{{Value: "a.example.com"}, {URI: true, Value: "spiffe://b"}}},
			sni:    "api.example.com",
			ca:     &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: systemRoots}},
			names:  []string{"DNS a.example.com", "URI spiffe://b"},
		},
		"AnyName": {
			reason: "Without a name Envoy should verify the request's name, and never none.",
			tls:    &ir.UpstreamTLS{},
			ca:     &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: systemRoots}},
			http:   follow,
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			c := &clusterv3.Cluster{Name: "c"}
			if err := speakTLS(c, tc.tls, nil); err != nil {
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
			if combined := got.GetCommonTlsContext().GetCombinedValidationContext(); combined != nil {
				v = combined.GetDefaultValidationContext()
			}
			secrets := Authorities(&ir.Shape{TLS: tc.tls})
			if (len(secrets) == 1) != tc.secret || len(secrets) == 1 && (!slices.Contains(SecretsOf(c), secrets[0].GetName()) || secrets[0].GetValidationContext().GetTrustedCa().GetInlineString() != tc.tls.CA) {
				t.Errorf("%s\nsecrets: %v, of cluster %v", tc.reason, secrets, c)
			}
			if diff := cmp.Diff(tc.ca, v.GetTrustedCa(), protocmp.Transform()); diff != "" {
				t.Errorf("%s\ncertificates: -want, +got\n%s", tc.reason, diff)
			}
			if got.GetSni() != tc.sni {
				t.Errorf("%s\nwant SNI %q, got %q", tc.reason, tc.sni, got.GetSni())
			}
			var names []string
			for _, n := range v.GetMatchTypedSubjectAltNames() {
				names = append(names, n.GetSanType().String()+" "+n.GetMatcher().GetExact())
			}
			if diff := cmp.Diff(tc.names, names); diff != "" {
				t.Errorf("%s\nnames: -want, +got\n%s", tc.reason, diff)
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

func TestRemoteTLS(t *testing.T) {
	remote := &ir.UpstreamTLS{ServerName: "web.example.ts.net"}
	for n, tc := range map[string]struct {
		reason string
		local  *ir.UpstreamTLS
	}{
		"PlainHere": {reason: "Only other clusters terminate TLS."},
		"TLSHere":   {reason: "Both speak TLS, with separate settings.", local: &ir.UpstreamTLS{ServerName: "app.shop.svc"}},
	} {
		t.Run(n, func(t *testing.T) {
			c := &clusterv3.Cluster{Name: "c"}
			if err := speakTLS(c, tc.local, remote); err != nil {
				t.Fatal(err)
			}
			if got := c.GetTransportSocket() != nil; got != (tc.local != nil) {
				t.Errorf("%s\nTLS here: %t", tc.reason, got)
			}
			if len(c.GetTransportSocketMatches()) != 1 {
				t.Fatalf("%s\nwant one socket by metadata, got %v", tc.reason, c.GetTransportSocketMatches())
			}
			got := &tlsv3.UpstreamTlsContext{}
			if err := c.GetTransportSocketMatches()[0].GetTransportSocket().GetTypedConfig().UnmarshalTo(got); err != nil {
				t.Fatal(err)
			}
			if got.GetSni() != remote.ServerName {
				t.Errorf("%s\nwant SNI %q, got %q", tc.reason, remote.ServerName, got.GetSni())
			}
			// The socket is for remote endpoints only.
			a := Assignment("a", []ir.Locality{
				{Name: "here", Endpoints: endpoints("10.0.0.1")},
				{Name: "there", Priority: 1, Remote: true, Endpoints: endpoints("10.0.0.2")},
			}, 0, ir.Tuning{})
			for i, group := range a.GetEndpoints() {
				mark := group.GetLbEndpoints()[0].GetMetadata().GetFilterMetadata()[socketMatch]
				if marked := proto.Equal(mark, c.GetTransportSocketMatches()[0].GetMatch()); marked != (i == 1) {
					t.Errorf("%s\nendpoint of %s is marked: %t", tc.reason, group.GetLocality().GetRegion(), marked)
				}
			}
		})
	}
}
