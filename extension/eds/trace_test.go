// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package eds

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// TestPushSpans checks that a push has one span, and that a snapshot without changes to subscribed
// lists has none.
func TestPushSpans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spans := tracetest.NewInMemoryExporter()
		var snapshot atomic.Pointer[ir.Snapshot]
		set := func(address string) {
			snapshot.Store(ir.NewSnapshot(ir.Contents{Targets: []*ir.Target{{Key: key("web"), Localities: localities(address)}}}))
		}
		set("10.0.0.1")
		s := NewServer(snapshot.Load, Options{Tracer: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)).Tracer("")})
		for range 2 {
			st, err := s.open("envoy", func(*discovery.DeltaDiscoveryResponse) error { return nil })
			if err != nil {
				t.Fatal(err)
			}
			defer s.close(st)
			if err := s.subscribe(st, []string{key("web").ClusterName()}, nil); err != nil {
				t.Fatal(err)
			}
		}
		go func() { _ = s.Run(t.Context()) }() // Ends with the context, without an error.
		for range 2 {
			set("10.0.0.2")
			s.ChangedAll()
			// Longer than the wait for further changes.
			<-time.After(time.Second)
			synctest.Wait()
		}
		got := spans.GetSpans()
		if len(got) != 1 || got[0].Name != "PushEndpoints" {
			t.Fatalf("want one span PushEndpoints, got %v", got)
		}
		if diff := cmp.Diff([]attribute.KeyValue{attribute.Int("lists", 1), attribute.Int("streams", 2)}, got[0].Attributes, cmp.AllowUnexported(attribute.Value{})); diff != "" {
			t.Errorf("-want attributes, +got:\n%s", diff)
		}
	})
}
