// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"context"
	"slices"
	"testing"
	"time"

	pb "github.com/envoyproxy/gateway/proto/extension"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	"github.com/tailscale-gateway/tailscale-gateway/extension/hooks"
	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
	"github.com/tailscale-gateway/tailscale-gateway/extension/serve"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
	"github.com/tailscale-gateway/tailscale-gateway/internal/trace"
)

const (
	patience = time.Minute

	// parentTrace and the constants beside it are a client's span, as W3C's traceparent.
	parentTrace = "0af7651916cd43dd8448eb211c80319c"
	parent      = "00-" + parentTrace + "-b7ad6b7169203331-01"
)

// hook calls a hook and the health check of a server with this provider, as Envoy Gateway
// does.
func hook(t *testing.T, p *trace.Provider) {
	t.Helper()
	l, err := serve.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := serve.NewServer(serve.Options{Credentials: serve.Credentials(nil, nil), Stats: serve.TraceCalls(p)})
	pb.RegisterEnvoyGatewayExtensionServer(s, hooks.NewServer(index.NewStore(), func(bool) xds.Source { return xds.XDSTP() }))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, l, 0) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()

	conn, err := grpc.NewClient("passthrough:///"+l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	call, stop := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), "traceparent", parent), patience)
	defer stop()
	if _, err := healthpb.NewHealthClient(conn).Check(call, &healthpb.HealthCheckRequest{}); err != nil {
		t.Fatal(err)
	}
	if _, err := pb.NewEnvoyGatewayExtensionClient(conn).PostTranslateModify(call, &pb.PostTranslateModifyRequest{Clusters: []*clusterv3.Cluster{{Name: "a"}}}); err != nil {
		t.Fatal(err)
	}
}

// TestHook checks that a hook has one span, a child of Envoy Gateway's span, and that a
// health check has none.
func TestHook(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	hook(t, trace.NewProvider(sdktrace.WithSyncer(spans)))
	got := spans.GetSpans()
	if len(got) != 1 {
		t.Fatalf("want one span, got %d", len(got))
	}
	if diff := cmp.Diff("envoygateway.extension.EnvoyGatewayExtension/PostTranslateModify", got[0].Name); diff != "" {
		t.Errorf("-want name, +got:\n%s", diff)
	}
	if diff := cmp.Diff(parentTrace, got[0].Parent.TraceID().String()); diff != "" {
		t.Errorf("-want parent, +got:\n%s", diff)
	}
	if !slices.ContainsFunc(got[0].Attributes, func(kv attribute.KeyValue) bool { return kv.Key == "rules" }) {
		t.Errorf("the span has no attribute about the translation: %v", got[0].Attributes)
	}
}

// TestOff checks that a provider without an endpoint handles no calls.
func TestOff(t *testing.T) {
	p, err := trace.New(t.Context(), "", "test", "v1", nil)
	if err != nil {
		t.Fatal(err)
	}
	if serve.TraceCalls(p) != nil {
		t.Error("want no handler of calls without an endpoint")
	}
	hook(t, p)
}
