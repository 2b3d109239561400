// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"crypto/x509"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
)

const patience = time.Minute

// TestOff checks that a provider without an endpoint records no spans.
func TestOff(t *testing.T) {
	p, err := New(t.Context(), "", "test", "v1", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, span := p.Tracer().Start(t.Context(), "x")
	if span.IsRecording() || p.Sends() {
		t.Error("want no recorded span without an endpoint")
	}
}

// A sink is a fake collector.
type sink struct {
	collector.UnimplementedTraceServiceServer

	got chan *collector.ExportTraceServiceRequest
}

func (s sink) Export(_ context.Context, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	s.got <- r
	return &collector.ExportTraceServiceResponse{}, nil
}

// TestExport sends spans to a collector. The last ones are sent on shutdown.
func TestExport(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	secure := httptest.NewUnstartedServer(nil)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	t.Cleanup(secure.Close)
	private := x509.NewCertPool()
	private.AddCert(secure.Certificate())
	s := sink{got: make(chan *collector.ExportTraceServiceRequest, 1)}
	srv := grpc.NewServer()
	collector.RegisterTraceServiceServer(srv, s)
	go func() { _ = srv.Serve(l) }() // Stop ends it.
	t.Cleanup(srv.Stop)
	secure.Config.Handler = srv

	cases := map[string]struct {
		reason      string
		endpoint    string
		authorities *x509.CertPool
	}{
		"HostPort":    {reason: "An address alone is one without TLS.", endpoint: l.Addr().String()},
		"URL":         {reason: "The scheme may say so.", endpoint: "http://" + l.Addr().String()},
		"Plain":       {reason: "Authorities do not make a connection use TLS.", endpoint: "http://" + l.Addr().String(), authorities: private},
		"Authorities": {reason: "A collector with a private certificate is trusted by its authority.", endpoint: secure.URL, authorities: private},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Log(tc.reason)
			p, err := New(t.Context(), tc.endpoint, "test", "v1", tc.authorities)
			if err != nil {
				t.Fatal(err)
			}
			_, span := p.Tracer().Start(t.Context(), "x")
			span.End()
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := p.Run(ctx); err != nil {
				t.Fatal(err)
			}
			select {
			case r := <-s.got:
				if got := len(r.GetResourceSpans()[0].GetScopeSpans()[0].GetSpans()); got != 1 {
					t.Errorf("want one span, got %d", got)
				}
			case <-time.After(patience):
				t.Error("the collector received nothing")
			}
		})
	}
}
