// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pb "github.com/envoyproxy/gateway/proto/extension"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpointservice "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpccredentials "google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/extension/credentials"
	"github.com/tailscale-gateway/tailscale-gateway/extension/eds"
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
		"Insecure":      {reason: "The flags for it permit any client.", cli: CLI{HooksAddress: ":5005", InsecureHooks: true, EDSAddress: ":5006", InsecureEDS: true}},
		"Contradiction": {reason: "The two flags contradict each other.", cli: CLI{HooksAddress: ":5005", HooksTLS: "d", HooksClientCA: "f", InsecureHooks: true, EDSAddress: "unix:/e"}, want: "leave one out"},
		"ClientsInVain": {reason: "Without TLS a client cannot present a certificate.", cli: CLI{HooksAddress: ":5005", HooksClientCA: "f", EDSAddress: "unix:/e"}, want: "needs --hooks-tls"},
		"Config":        {reason: "A ConfigMap has a namespace.", cli: CLI{HooksAddress: "unix:/h", EDSAddress: "unix:/e", EnvoyGatewayConfig: "envoy-gateway-config"}, want: "--envoy-gateway-config"},
		"AutoForOne":    {reason: "GatewayClasses are in no namespace.", cli: CLI{HooksAddress: "unix:/h", EDSAddress: "unix:/e", XDSMode: modeAuto, OnlyGateway: "shop/gw"}, want: "--xds-mode"},
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

// TestSource checks which Envoys get endpoints from the authority in their bootstrap.
func TestSource(t *testing.T) {
	cases := map[string]struct {
		reason       string
		mode         string
		bootstrapped bool
		want         bool
	}{
		"GoogleGRPC":      {reason: "The source suits any Envoy, also one with the authority.", mode: "GoogleGRPC", bootstrapped: true},
		"XDSTP":           {reason: "In this mode all Envoys have the authority.", mode: modeXDSTP, want: true},
		"AutoWith":        {reason: "The Envoys have the authority.", mode: modeAuto, bootstrapped: true, want: true},
		"AutoWithout":     {reason: "The Envoys may lack the authority.", mode: modeAuto},
		"GoogleGRPCPlain": {reason: "The source needs nothing in the bootstrap.", mode: "GoogleGRPC"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &certificates{target: "127.0.0.1:5006", mode: tc.mode}
			c.setEnvoyTLS(xds.TLS{})
			if got := c.Source(tc.bootstrapped).EDS("list").GetEdsConfig() == nil; got != tc.want {
				t.Errorf("\n%s\nSource(%t): from the authority: want %t, got %t", tc.reason, tc.bootstrapped, tc.want, got)
			}
		})
	}
}

// TestUnauthenticated has clients of all sorts call hooks and subscribe to endpoints of a running
// extension. It answers only clients with the right certificate.
func TestUnauthenticated(t *testing.T) {
	start := time.Now()
	ours, foreign := newAuthority(t, start), newAuthority(t, start)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "objects"), 0o700); err != nil {
		t.Fatal(err)
	}
	keep := func(p credentials.Pair, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		out := t.TempDir()
		for file, b := range map[string][]byte{"tls.crt": p.Cert, "tls.key": p.Key, "ca.crt": ours.Cert} {
			if err := os.WriteFile(filepath.Join(out, file), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return out
	}
	const server, hooks, endpoints = "extension", "hooks-client", "envoy-client"
	tlsDir := keep(ours.Server([]string{server}, start))
	ca := filepath.Join(tlsDir, "ca.crt")
	h, e, o := filepath.Join(dir, "h"), filepath.Join(dir, "e"), filepath.Join(dir, "o")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, &CLI{
			HooksAddress: "unix:" + h, HooksTLS: tlsDir, HooksClientCA: ca, HooksClientName: hooks,
			EDSAddress: "unix:" + e, EDSTLS: tlsDir, EDSClientCA: ca, EDSClientName: endpoints, EDSClientTLS: keep(ours.Client(endpoints, start)),
			EDSTarget: "unix:" + e, ObserveAddress: "unix:" + o, FromFiles: filepath.Join(dir, "objects"),
		}, logging.NewNopLogger())
	}()

	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ours.Cert)
	shows := func(pairs ...credentials.Pair) grpccredentials.TransportCredentials {
		cfg := &tls.Config{RootCAs: roots, ServerName: server}
		for _, p := range pairs {
			cert, err := tls.X509KeyPair(p.Cert, p.Key)
			if err != nil {
				t.Fatal(err)
			}
			cfg.Certificates = append(cfg.Certificates, cert)
		}
		return grpccredentials.NewTLS(cfg)
	}
	client := func(a *credentials.Authority, name string, at time.Time) grpccredentials.TransportCredentials {
		p, err := a.Client(name, at)
		if err != nil {
			t.Fatal(err)
		}
		return shows(p)
	}
	servers := map[string]struct {
		socket, client, other string
		ask                   func(context.Context, *grpc.ClientConn) error
	}{
		"Hooks": {h, hooks, endpoints, func(ctx context.Context, c *grpc.ClientConn) error {
			_, err := pb.NewEnvoyGatewayExtensionClient(c).PostTranslateModify(ctx, &pb.PostTranslateModifyRequest{})
			return err
		}},
		"EDS": {e, endpoints, hooks, func(ctx context.Context, c *grpc.ClientConn) error {
			s, err := endpointservice.NewEndpointDiscoveryServiceClient(c).DeltaEndpoints(ctx)
			if err != nil {
				return err
			}
			if err := s.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: eds.TypeURL, ResourceNamesSubscribe: []string{"tailscale/services/shop/web/80/http"}}); err != nil {
				return err
			}
			_, err = s.Recv()
			return err
		}},
	}
	for name, s := range servers {
		for as, tc := range map[string]struct {
			reason string
			creds  grpccredentials.TransportCredentials
			ok     bool
		}{
			"Client":         {reason: "A client with the right certificate should be answered.", creds: client(ours, s.client, start), ok: true},
			"NoCertificate":  {reason: "A client without a certificate should be refused.", creds: shows()},
			"OtherAuthority": {reason: "A certificate of another authority should be refused.", creds: client(foreign, s.client, start)},
			"Expired":        {reason: "An expired certificate should be refused.", creds: client(ours, s.client, start.Add(-10*365*24*time.Hour))},
			"OtherServer":    {reason: "A certificate for the other server should be refused: an Envoy may not call hooks.", creds: client(ours, s.other, start)},
			"Clear":          {reason: "A client without TLS should be refused.", creds: insecure.NewCredentials()},
		} {
			t.Run(name+"/"+as, func(t *testing.T) {
				conn, err := grpc.NewClient("unix:"+s.socket, grpc.WithTransportCredentials(tc.creds))
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = conn.Close() }()
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				for err = s.ask(ctx, conn); tc.ok && status.Code(err) == codes.Unavailable && ctx.Err() == nil; err = s.ask(ctx, conn) {
					// The extension has not started yet.
				}
				if (err == nil) != tc.ok {
					t.Errorf("\n%s\nwant an answer: %t, got %v", tc.reason, tc.ok, err)
				}
			})
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func newAuthority(t *testing.T, at time.Time) *credentials.Authority {
	t.Helper()
	a, err := credentials.NewAuthority("authority", at.Add(-5*365*24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return a
}
