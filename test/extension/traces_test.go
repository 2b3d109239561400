//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"context"
	"net"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/egress"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi/localapitest"
	"github.com/tailscale-gateway/tailscale-gateway/test/standalone"
)

// spans are the IDs of the spans that a collector has received, by trace.
type spans struct {
	collector.UnimplementedTraceServiceServer

	mu  sync.Mutex
	ids map[string]map[string]bool
}

// Export implements the collector.
func (s *spans) Export(_ context.Context, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range r.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			for _, sp := range scope.GetSpans() {
				id := string(sp.GetTraceId())
				if s.ids[id] == nil {
					s.ids[id] = map[string]bool{}
				}
				s.ids[id][string(sp.GetSpanId())] = true
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// has reports whether a span has been received.
func (s *spans) has(trace, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ids[trace][id]
}

// TestTraces checks that the dial of an egress proxy is part of the trace that Envoy begins: its parent is
// a span of Envoy's request.
func TestTraces(t *testing.T) {
	t.Parallel()
	const collectorAddress, proxyAddress = "192.0.2.40:4317", "192.0.2.41:10007"
	w := newEnvironmentOf(t, standalone.Options{Proxy: map[string]any{"telemetry": map[string]any{"tracing": map[string]any{
		"samplingRate": 100, "provider": map[string]any{"type": "OpenTelemetry", "host": "192.0.2.40", "port": 4317},
	}}}})
	ofEnvoy := &spans{ids: map[string]map[string]bool{}}
	srv := grpc.NewServer()
	collector.RegisterTraceServiceServer(srv, ofEnvoy)
	go func() { _ = srv.Serve(w.listen(t, collectorAddress)) }() // Stop ends it.
	t.Cleanup(srv.Stop)

	// The device in the tailnet.
	device := httptest.NewServer(respond("device"))
	t.Cleanup(device.Close)
	tailscaled := localapitest.New(t, func() {})
	target := netip.MustParseAddrPort("100.64.0.9:80")
	tailscaled.SetDial(func(addr string) (net.Conn, error) {
		if addr != target.String() {
			return nil, nil // Nil without an error means that no device has the address.
		}
		return net.Dial("tcp", device.Listener.Addr().String())
	})
	ofAgent := tracetest.NewInMemoryExporter()
	proxy := egress.NewServer(localapi.NewDialer(tailscaled.Socket).Dial, egress.NewMetrics(), logging.NewNopLogger(), func() {},
		egress.WithTracer(sdktrace.NewTracerProvider(sdktrace.WithSyncer(ofAgent)).Tracer("test")),
		egress.WithListen(func(ctx context.Context, _ uint16) ([]net.Listener, error) {
			l, err := w.Listen(ctx, "tcp", proxyAddress)
			return []net.Listener{l}, err
		}))
	t.Cleanup(proxy.Close)
	if failed := proxy.Set(t.Context(), map[uint16]egress.Route{10007: {Target: "device/80", Addr: target}}); len(failed) > 0 {
		t.Fatal(failed)
	}

	w.apply(t, "traces.yaml")
	w.answers(t, "traced.example.com", "device")
	w.until(t, func(context.Context) error {
		got := ofAgent.GetSpans()
		if len(got) == 0 {
			return errors.New("the agent has sent no span")
		}
		trace, parent := got[0].SpanContext.TraceID(), got[0].Parent.SpanID()
		if !ofEnvoy.has(string(trace[:]), string(parent[:])) {
			return errors.Errorf("Envoy has not sent the parent of the dial, %s of trace %s", parent, trace)
		}
		return nil
	})
}
