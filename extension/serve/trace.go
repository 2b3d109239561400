// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc/filters"
	"go.opentelemetry.io/otel/propagation"
	"google.golang.org/grpc/stats"

	"github.com/tailscale-gateway/tailscale-gateway/internal/trace"
)

// TraceCalls returns a handler that creates a span for each call of a gRPC server, except for health checks.
// The parent is the client's span, if it sends one. TraceCalls returns nil if the provider sends no spans.
func TraceCalls(p *trace.Provider) stats.Handler {
	if !p.Sends() {
		return nil
	}
	return otelgrpc.NewServerHandler(
		otelgrpc.WithTracerProvider(p.TracerProvider()),
		otelgrpc.WithPropagators(propagation.TraceContext{}),
		otelgrpc.WithFilter(filters.Not(filters.HealthCheck())),
	)
}
