// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
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

	"github.com/tailscale-gateway/tailscale-gateway/extension/certificates"
	"github.com/tailscale-gateway/tailscale-gateway/extension/credentials"
	"github.com/tailscale-gateway/tailscale-gateway/extension/eds"
)

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
		done <- Run(ctx, Options{
			HooksAddress: "unix:" + h, EDSAddress: "unix:" + e, ObserveAddress: "unix:" + o, FromFiles: filepath.Join(dir, "objects"),
			Certificates: certificates.Options{
				Hooks:    certificates.ServerOptions{TLS: tlsDir, ClientCA: ca, ClientName: hooks},
				EDS:      certificates.ServerOptions{TLS: tlsDir, ClientCA: ca, ClientName: endpoints},
				EnvoyTLS: keep(ours.Client(endpoints, start)), Target: "unix:" + e,
			},
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
