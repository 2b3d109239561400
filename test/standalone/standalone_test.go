//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package standalone_test

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/envoyproxy/gateway/proto/extension"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tailscale-gateway/tailscale-gateway/test/standalone"
)

const (
	backend = "192.0.2.10:8000"
	gateway = "http://127.0.0.1:8888/"
	host    = "www.example.com"

	gatewayManifest = `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata:
  name: gw
spec:
  gatewayClassName: envoy
  listeners:
  - name: http
    protocol: HTTP
    port: 8888
`
	plainRoute = `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: web
spec:
  parentRefs:
  - name: gw
  hostnames:
  - www.example.com
  rules:
  - backendRefs:
    - group: gateway.envoyproxy.io
      kind: Backend
      name: web
---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: Backend
metadata:
  name: web
spec:
  endpoints:
  - ip:
      address: 192.0.2.10
      port: 8000
`
	customRoute = `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: web
spec:
  parentRefs:
  - name: gw
  hostnames:
  - www.example.com
  rules:
  - backendRefs:
    - group: gateway.tailscale.com
      kind: TailscaleServices
      name: web
      port: 80
---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleServices
metadata:
  name: web
`
)

// start starts a Gateway and a backend, and writes the manifests.
func start(t *testing.T, o standalone.Options, manifests ...string) *standalone.Gateway {
	t.Helper()
	log := &lockedBuffer{}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(log)
		}
	})
	o.Log = log
	g, err := standalone.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Stop(); err != nil {
			t.Error(err)
		}
	})
	l, err := g.Listen(t.Context(), "tcp", backend)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Asked-With", r.Header.Get("X-Request-Id"))
	})}
	go s.Serve(l) // Ends with Close.
	t.Cleanup(func() { _ = s.Close() })
	if err := g.Write("web", strings.Join(manifests, "---\n")); err != nil {
		t.Fatal(err)
	}
	return g
}

// within returns a context with the limit of each step on a busy machine.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// TestStart checks a plain route through a real Envoy.
func TestStart(t *testing.T) {
	t.Parallel()
	began := time.Now()
	g := start(t, standalone.Options{}, gatewayManifest, plainRoute)
	ctx := within(t)
	if err := g.Answers(ctx, gateway, host); err != nil {
		t.Fatal(err)
	}
	t.Logf("answers %s after the start", time.Since(began).Round(time.Millisecond))

	req, err := http.NewRequestWithContext(ctx, http.MethodGet, gateway, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	rsp, err := g.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := rsp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	// Only Envoy sets a request ID.
	if rsp.Header.Get("Asked-With") == "" {
		t.Errorf("the request did not come from Envoy: %v", rsp.Header)
	}
	info, err := g.Admin(ctx, "/server_info")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(info, []byte(`"state": "LIVE"`)) {
		t.Errorf("Envoy is not live: %s", info)
	}

	// A deleted route stops answering.
	if err := g.Write("web", gatewayManifest); err != nil {
		t.Fatal(err)
	}
	if err := g.Until(ctx, func(ctx context.Context) error { return g.Gets(ctx, gateway, host, http.StatusNotFound) }); err != nil {
		t.Error(err)
	}
}

// TestExtension checks that hooks of an extension server select Envoy's backends.
func TestExtension(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "hooks.sock")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	extension.RegisterEnvoyGatewayExtensionServer(s, pointing{})
	go s.Serve(l) // Ends with Stop.
	t.Cleanup(s.Stop)
	g := start(t, standalone.Options{
		Extension: socket,
		Backends:  []schema.GroupVersionKind{{Group: "gateway.tailscale.com", Version: "v1alpha1", Kind: "TailscaleServices"}},
	}, gatewayManifest, customRoute)
	if err := g.Answers(within(t), gateway, host); err != nil {
		t.Fatal(err)
	}
}

// pointing is an extension that points every cluster of a route to the backend.
type pointing struct {
	extension.UnimplementedEnvoyGatewayExtensionServer
}

func (pointing) PostTranslateModify(_ context.Context, r *extension.PostTranslateModifyRequest) (*extension.PostTranslateModifyResponse, error) {
	address := &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: "192.0.2.10", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 8000},
	}}}
	for _, c := range r.GetClusters() {
		if !strings.HasPrefix(c.GetName(), "httproute/") {
			continue
		}
		c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}
		c.EdsClusterConfig = nil
		c.LoadAssignment = &endpointv3.ClusterLoadAssignment{
			ClusterName: c.GetName(),
			Endpoints: []*endpointv3.LocalityLbEndpoints{{LbEndpoints: []*endpointv3.LbEndpoint{{
				HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: address}},
			}}}},
		}
		// The setting would need weights of localities.
		c.LoadBalancingPolicy = nil
	}
	return &extension.PostTranslateModifyResponse{Clusters: r.GetClusters(), Secrets: r.GetSecrets(), Listeners: r.GetListeners(), Routes: r.GetRoutes()}, nil
}

// A lockedBuffer may be read while a process writes into it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
