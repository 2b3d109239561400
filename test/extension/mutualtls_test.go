//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"strings"
	"testing"

	pb "github.com/envoyproxy/gateway/proto/extension"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpointservice "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/extension/eds"
)

// TestMutualTLS checks that the certificates of the extension work with a real Envoy Gateway and a
// real Envoy, that other clients are rejected, and that both follow a renewal.
func TestMutualTLS(t *testing.T) { //nolint:tparallel // Its steps share one environment.
	t.Parallel()
	w := newEnvironment(t)
	w.apply(t, "backends.yaml")
	w.apply(t, "routes.yaml")
	// Hooks generate the route, and endpoints come by EDS.
	w.answers(t, "services.example.com", "192.0.2.10:8000")

	t.Run("HidesKey", w.hidesKey)
	t.Run("RejectsOthers", w.rejectsOthers)
	t.Run("Renewed", w.renews)
}

// made returns one of the Secrets with the extension's certificates.
func (w *environment) made(t *testing.T, suffix string) *corev1.Secret {
	t.Helper()
	s := &corev1.Secret{}
	if err := w.kube.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: extensionName + suffix}, s); err != nil {
		t.Fatal(err)
	}
	return s
}

// hidesKey checks that Envoy's configuration dump has no key.
func (w *environment) hidesKey(t *testing.T) {
	dump, err := w.Admin(t.Context(), "/config_dump")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(dump, []byte(`"cert_chain"`)) || !bytes.Contains(dump, []byte(`"private_key"`)) {
		t.Error("Envoy has no certificate to present")
	}
	key := string(w.made(t, "-certificates").Data["envoy.key"])
	for _, line := range strings.Split(key, "\n")[1:2] {
		if bytes.Contains(dump, []byte(line)) {
			t.Error("Envoy's dump has the extension's key")
		}
	}
	if bytes.Contains(dump, []byte("BEGIN EC PRIVATE KEY")) {
		t.Error("Envoy's dump has a key")
	}
}

// rejectsOthers calls with other certificates, from the host of Envoy Gateway and Envoy.
func (w *environment) rejectsOthers(t *testing.T) {
	client, all := w.made(t, "-client"), w.made(t, "-certificates")
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(client.Data["ca.crt"])
	presents := func(cert, key []byte) credentials.TransportCredentials {
		cfg := &tls.Config{RootCAs: roots, ServerName: edsName}
		if cert != nil {
			pair, err := tls.X509KeyPair(cert, key)
			if err != nil {
				t.Fatal(err)
			}
			cfg.Certificates = []tls.Certificate{pair}
		}
		return credentials.NewTLS(cfg)
	}
	envoyGateway := presents(client.Data["tls.crt"], client.Data["tls.key"])
	envoy := presents(all.Data["envoy.crt"], all.Data["envoy.key"])
	hooks := func(c *grpc.ClientConn) error {
		_, err := pb.NewEnvoyGatewayExtensionClient(c).PostTranslateModify(within(t), &pb.PostTranslateModifyRequest{})
		return err
	}
	endpoints := func(c *grpc.ClientConn) error {
		s, err := endpointservice.NewEndpointDiscoveryServiceClient(c).DeltaEndpoints(within(t))
		if err != nil {
			return err
		}
		if err := s.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: eds.TypeURL, ResourceNamesSubscribe: []string{"tailscale/services/default/web/80/http"}}); err != nil {
			return err
		}
		_, err = s.Recv()
		return err
	}
	for name, tc := range map[string]struct {
		creds credentials.TransportCredentials
		hooks bool
		call  func(*grpc.ClientConn) error
		ok    bool
	}{
		"HooksToEnvoyGateway":         {creds: envoyGateway, hooks: true, call: hooks, ok: true},
		"HooksToEnvoy":                {creds: envoy, hooks: true, call: hooks},
		"HooksWithoutCertificate":     {creds: presents(nil, nil), hooks: true, call: hooks},
		"HooksWithoutTLS":             {creds: insecure.NewCredentials(), hooks: true, call: hooks},
		"EndpointsToEnvoy":            {creds: envoy, call: endpoints, ok: true},
		"EndpointsToEnvoyGateway":     {creds: envoyGateway, call: endpoints},
		"EndpointsWithoutCertificate": {creds: presents(nil, nil), call: endpoints},
		"EndpointsWithoutTLS":         {creds: insecure.NewCredentials(), call: endpoints},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := grpc.NewClient("passthrough:///extension", grpc.WithTransportCredentials(tc.creds), grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				if tc.hooks {
					return (&net.Dialer{}).DialContext(ctx, "unix", w.socket)
				}
				return w.Dial(ctx, "tcp", "127.0.0.1:5006")
			}))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			if err := tc.call(c); (err == nil) != tc.ok {
				t.Errorf("want a response: %t, got %v", tc.ok, err)
			}
		})
	}
}

// renews deletes the Secrets: the extension issues new certificates once the provider has created
// them again, and Envoy Gateway takes them at its next call and passes them to Envoy.
func (w *environment) renews(t *testing.T) {
	previous := w.made(t, "-client")
	for _, suffix := range []string{"-certificates", "-client"} {
		if err := w.kube.Delete(t.Context(), w.made(t, suffix)); err != nil {
			t.Fatal(err)
		}
	}
	w.createSecrets(t)
	// A starting process writes them at once, and a running one within a minute.
	if err := w.extension.Stop(limit); err != nil {
		t.Fatal(err)
	}
	w.startExtension(t)
	current := w.made(t, "-client")
	if bytes.Equal(previous.Data["ca.crt"], current.Data["ca.crt"]) {
		t.Fatal("the authority has not changed")
	}
	w.until(t, func(ctx context.Context) error {
		streams, err := w.metrics(ctx, "127.0.0.1:5007", "tailscale_gateway_eds_streams")
		if err == nil && (streams == "" || streams == "0") {
			err = errors.New("no Envoy has subscribed with the new certificates")
		}
		return err
	})
	follows(t, w)
}
