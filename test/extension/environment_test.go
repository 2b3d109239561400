//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"bytes"
	"context"
	log "log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	corev1 "k8s.io/api/core/v1"
	kmeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/extension"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
	"github.com/tailscale-gateway/tailscale-gateway/test/standalone"
)

const (
	// extensionName is the prefix of the extension's Secrets, and edsName the name in the
	// certificate of its endpoint server. As in a cluster, no client dials that name: Envoys dial
	// an address, which is not in a certificate.
	extensionName = "extension"
	edsName       = extensionName + "-eds.default.svc"
	// ready is the URL of the extension's readiness.
	ready = "http://127.0.0.1:5007/ready"
	// answeredBy is the trailer with the address that answered.
	answeredBy = "answered-by"
	// behindHeader has the protocol of the request to the backend.
	behindHeader = "Asked-By"
	// messages of a stream.
	messages = 3
	// limit is how long each step may take on a busy machine.
	limit = time.Minute
)

// An environment holds all processes of a test.
type environment struct {
	*standalone.Gateway

	kube client.Client
	api  *apiserver.Server
	// socket is the path at which Envoy Gateway calls hooks.
	socket string
	// log has the output of Envoy Gateway, Envoy, the extension and backends.
	log *os.File
	// tls are the backends behind TLSRoutes, and http the others that serve HTTP, by address. All
	// respond with their address.
	tls, http map[string]*httptest.Server

	extension *apiserver.Process
	// command starts the extension.
	command []string
}

// newEnvironment starts all processes and backends. Flags precede the extension's other flags.
func newEnvironment(t *testing.T, flags ...string) *environment {
	t.Helper()
	return newEnvironmentOf(t, standalone.Options{}, flags...)
}

// newEnvironmentOf is like newEnvironment, with additional options of Envoy Gateway.
func newEnvironmentOf(t *testing.T, o standalone.Options, flags ...string) *environment {
	t.Helper()
	w := &environment{log: newLog(t), tls: map[string]*httptest.Server{}, http: map[string]*httptest.Server{}}
	crds, err := standalone.CRDs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	crds = append(crds, filepath.Join("..", "..", charts.ExtensionCRDs))
	w.api, err = apiserver.Start(t.Context(), apiserver.Options{CRDs: crds, Composites: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, w.api.Stop()) })
	if w.kube, err = client.New(w.api.Config, client.Options{}); err != nil {
		t.Fatal(err)
	}
	w.createObject(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: extensionName, Labels: map[string]string{meta.LabelExtension: "gateway"}}})
	w.createSecrets(t)
	w.socket = filepath.Join(t.TempDir(), "hooks.sock")
	kinds := []schema.GroupVersionKind{}
	for _, k := range []string{"TailscaleServices", "TailscaleEndpoints"} {
		kinds = append(kinds, schema.GroupVersionKind{Group: "gateway.tailscale.com", Version: "v1alpha1", Kind: k})
	}
	o.Policies = []schema.GroupVersionKind{{Group: "gateway.tailscale.com", Version: "v1alpha1", Kind: "TailscaleRevision"}}
	o.Extension, o.Backends, o.Kubeconfig, o.Log = w.socket, kinds, w.api.Kubeconfig, w.log
	o.ExtensionSecret = types.NamespacedName{Namespace: "default", Name: extensionName + "-client"}
	w.Gateway, err = standalone.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, w.Stop()) })
	kubeconfig, err := w.api.WriteKubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	w.command = []string{
		program(t), "--hooks-address=unix:" + w.socket, "--eds-address=127.0.0.1:5006", "--eds-target=[127.0.0.1]:5006",
		"--make-certificates=" + extensionName, "--eds-server-name=" + edsName,
		"--observe-address=127.0.0.1:5007", "--kubeconfig=" + kubeconfig, "--namespace=default",
	}
	w.command = append(w.command, flags...)
	w.startExtension(t)
	t.Cleanup(func() { check(t, w.extension.Stop(limit)) })
	w.backends(t)
	return w
}

// createSecrets creates the Secrets of the extension as the provider does.
func (w *environment) createSecrets(t *testing.T) {
	t.Helper()
	account := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: extensionName}}
	if _, err := extension.NewReconciler(w.kube).Reconcile(t.Context(), account); err != nil {
		t.Fatal(err)
	}
}

// newLog returns a file among the test's artifacts, which go test -artifacts keeps.
func newLog(t *testing.T) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.ArtifactDir(), "environment.log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, f.Close()) })
	return f
}

// startExtension starts the extension and waits until it serves.
func (w *environment) startExtension(t *testing.T) {
	t.Helper()
	var err error
	if w.extension, err = w.Run(w.log, w.command[0], w.command[1:]...); err != nil {
		t.Fatal(err)
	}
	if err := w.Answers(within(t), ready, ""); err != nil {
		t.Fatal(err)
	}
}

// backends starts backends that respond with their address: pods of a Service, and ports of an
// egress pod.
func (w *environment) backends(t *testing.T) {
	t.Helper()
	for _, addr := range []string{"192.0.2.10:8000", "192.0.2.11:8000", "192.0.2.20:10007", "192.0.2.20:10008"} {
		w.serve(t, addr, respond(addr))
	}
	for _, addr := range []string{"192.0.2.10:9444", "192.0.2.20:10014"} {
		w.serveTLS(t, addr)
	}
	for _, addr := range []string{"192.0.2.10:8001", "192.0.2.20:10011"} {
		w.serveGRPC(t, addr)
	}
	for _, addr := range []string{"192.0.2.10:9000", "192.0.2.20:10012"} {
		w.serveTCP(t, addr)
	}
	for _, addr := range []string{"192.0.2.10:9001", "192.0.2.20:10013"} {
		w.serveUDP(t, addr)
	}
}

// serve serves HTTP, and HTTP/2 with prior knowledge.
func (w *environment) serve(t *testing.T, addr string, h http.Handler) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Listener = w.listen(t, addr)
	s.Config.Protocols = &http.Protocols{}
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	w.http[addr] = s
}

// serveTLS serves with a self-signed certificate for example.com.
func (w *environment) serveTLS(t *testing.T, addr string) {
	t.Helper()
	s := httptest.NewUnstartedServer(respond(addr))
	s.Listener = w.listen(t, addr)
	s.Config.ErrorLog = log.New(w.log, "", log.LstdFlags)
	s.StartTLS()
	t.Cleanup(s.Close)
	w.tls[addr] = s
}

// serveGRPC serves gRPC's health, with the address in a trailer.
func (w *environment) serveGRPC(t *testing.T, addr string) {
	t.Helper()
	s := grpc.NewServer(
		grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			if err := grpc.SetTrailer(ctx, metadata.Pairs(answeredBy, addr)); err != nil {
				return nil, err
			}
			return next(ctx, req)
		}),
		// The real server's stream does not end.
		grpc.StreamInterceptor(func(_ any, s grpc.ServerStream, _ *grpc.StreamServerInfo, _ grpc.StreamHandler) error {
			s.SetTrailer(metadata.Pairs(answeredBy, addr))
			if err := s.RecvMsg(&grpc_health_v1.HealthCheckRequest{}); err != nil {
				return err
			}
			for range messages {
				if err := s.SendMsg(&grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_SERVING}); err != nil {
					return err
				}
			}
			return nil
		}),
	)
	grpc_health_v1.RegisterHealthServer(s, health.NewServer())
	l := w.listen(t, addr)
	go s.Serve(l) // Ends with Stop.
	t.Cleanup(s.Stop)
}

// serveTCP sends the address to each client.
func (w *environment) serveTCP(t *testing.T, addr string) {
	t.Helper()
	tcp := w.listen(t, addr)
	t.Cleanup(func() { _ = tcp.Close() })
	go func() {
		for {
			c, err := tcp.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte(addr)) // The client may have gone.
			_ = c.Close()
		}
	}()
}

// serveUDP responds with the message and the address.
func (w *environment) serveUDP(t *testing.T, addr string) {
	t.Helper()
	udp, err := w.ListenPacket(t.Context(), "udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = udp.Close() })
	go func() {
		b := make([]byte, 1500)
		for {
			n, sender, err := udp.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = udp.WriteTo(append(b[:n:n], addr...), sender) // A datagram may be lost.
		}
	}()
}

func (w *environment) listen(t *testing.T, addr string) net.Listener {
	t.Helper()
	l, err := w.Listen(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func respond(body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(behindHeader, r.Proto)
		_, _ = w.Write([]byte(body)) // The client may have gone.
	})
}

// apply applies the objects of a file.
func (w *environment) apply(t *testing.T, file string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range bytes.Split(b, []byte("---\n")) {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(doc, u); err != nil {
			t.Fatal(err)
		}
		// A busy API server installs a kind some time before it serves it.
		w.until(t, func(ctx context.Context) error {
			err := w.kube.Create(ctx, u)
			if err != nil && !kmeta.IsNoMatchError(err) {
				t.Fatal(err)
			}
			return err
		})
	}
}

// until polls until a check returns nil.
func (w *environment) until(t *testing.T, check func(context.Context) error) {
	t.Helper()
	if err := w.Until(within(t), check); err != nil {
		t.Fatal(err)
	}
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}
