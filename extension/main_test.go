// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

// TestValidate checks addresses that other machines reach, with and without flags that restrict
// clients.
func TestValidate(t *testing.T) {
	cases := map[string]struct {
		reason string
		cli    CLI
		// want is part of the error. Empty means no error.
		want string
	}{
		"Message":       {reason: "gRPC has no larger messages.", cli: CLI{HooksAddress: "unix:/h", EDSAddress: "unix:/e", HooksMaxMessage: 2048}, want: "--hooks-max-message-mib"},
		"Sockets":       {reason: "Only this machine reaches a socket.", cli: CLI{HooksAddress: "unix:/h", EDSAddress: "unix:/e"}},
		"Loopback":      {reason: "So is loopback.", cli: CLI{HooksAddress: "127.0.0.1:5005", EDSAddress: "[::1]:5006"}},
		"Hooks":         {reason: "Hooks without TLS would reveal private keys.", cli: CLI{HooksAddress: ":5005", EDSAddress: "unix:/e"}, want: "--hooks-client-ca"},
		"HooksTLS":      {reason: "TLS without client certificates answers any client.", cli: CLI{HooksAddress: ":5005", HooksTLS: "d", EDSAddress: "unix:/e"}, want: "--hooks-client-ca"},
		"Endpoints":     {reason: "Endpoints should not be served to any client.", cli: CLI{HooksAddress: "unix:/h", EDSAddress: "0.0.0.0:5006", EDSTLS: "d"}, want: "--eds-client-ca"},
		"Both":          {reason: "With client certificates both servers are restricted.", cli: CLI{HooksAddress: ":5005", HooksTLS: "d", HooksClientCA: "f", EDSAddress: ":5006", EDSTLS: "d", EDSClientCA: "f"}},
		"Made":          {reason: "Generated certificates restrict both servers too.", cli: CLI{HooksAddress: ":5005", EDSAddress: ":5006", MakeCertificates: "web", Namespace: "shop"}},
		"MadeNowhere":   {reason: "Generated certificates need a namespace.", cli: CLI{HooksAddress: "unix:/h", EDSAddress: "unix:/e", MakeCertificates: "web"}, want: "--namespace"},
		"Write":         {reason: "Without servers there is nothing to restrict.", cli: CLI{HooksAddress: ":5005", EDSAddress: ":5006", WriteCertificates: "web", CertificateNames: []string{"web.shop.svc"}, Namespace: "shop"}},
		"WriteNowhere":  {reason: "Secrets have a namespace.", cli: CLI{WriteCertificates: "web", CertificateNames: []string{"web.shop.svc"}}, want: "--namespace"},
		"WriteNoNames":  {reason: "Clients would refuse a server without names.", cli: CLI{WriteCertificates: "web", Namespace: "shop"}, want: "--certificate-names"},
		"WriteAndMake":  {reason: "The two flags store certificates in different Secrets.", cli: CLI{WriteCertificates: "web", CertificateNames: []string{"web.shop.svc"}, MakeCertificates: "web", Namespace: "shop"}, want: "--make-certificates"},
		"NamesInVain":   {reason: "Names without the other flag have no effect.", cli: CLI{HooksAddress: "unix:/h", EDSAddress: "unix:/e", CertificateNames: []string{"web.shop.svc"}}, want: "--write-certificates"},
		"ClientsInVain": {reason: "Without TLS a client cannot present a certificate.", cli: CLI{HooksAddress: ":5005", HooksClientCA: "f", EDSAddress: "unix:/e"}, want: "needs --hooks-tls"},
		"Config":        {reason: "A ConfigMap has a namespace.", cli: CLI{HooksAddress: "unix:/h", EDSAddress: "unix:/e", EnvoyGatewayConfig: "envoy-gateway-config"}, want: "--envoy-gateway-config"},
		"AutoForOne":    {reason: "GatewayClasses are in no namespace.", cli: CLI{HooksAddress: "unix:/h", EDSAddress: "unix:/e", XDSMode: string(xds.ModeAuto), OnlyGateway: "shop/gw"}, want: "--xds-mode"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.cli.EDSTarget = "127.0.0.1:5006"
			err := tc.cli.Validate()
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("\n%s\nwant %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}
