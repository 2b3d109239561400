// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package trace sends spans to an OpenTelemetry collector, if one is configured. The
// packages that create spans describe them: hooks for each hook, and eds for each push of
// endpoints.
package trace

import (
	"context"
	"strings"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc/filters"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc/stats"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

const (
	// scope is the name of the instrumentation scope of our spans.
	scope = "github.com/tailscale-gateway/tailscale-gateway/extension"

	// flushTimeout is how long the last spans may take at the end.
	flushTimeout = 2 * time.Second
)

// A Provider creates spans. Without an endpoint it creates none, at no cost.
type Provider struct {
	provider trace.TracerProvider
	sdk      *sdktrace.TracerProvider
}

// New returns a provider that sends spans by OTLP over gRPC to endpoint: HOST:PORT without
// TLS, or http:// or https:// with a host and a port. If endpoint is empty, the provider
// sends nothing. New does not wait for the collector. Spans that cannot be sent are dropped.
func New(ctx context.Context, endpoint, version string) (*Provider, error) {
	if endpoint == "" {
		return &Provider{provider: noop.NewTracerProvider()}, nil
	}
	opts := []otlptracegrpc.Option{otlptracegrpc.WithEndpointURL(endpoint)}
	if !strings.Contains(endpoint, "://") {
		opts = []otlptracegrpc.Option{otlptracegrpc.WithEndpoint(endpoint), otlptracegrpc.WithInsecure()}
	}
	exporter, err := otlptracegrpc.New(ctx, opts...)
	if err != nil {
		return nil, errors.Wrapf(err, "cannot send traces to %q", endpoint)
	}
	return newProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(resource.NewSchemaless(
		attribute.String("service.name", "tailscale-gateway-extension"),
		attribute.String("service.version", version),
	))), nil
}

func newProvider(o ...sdktrace.TracerProviderOption) *Provider {
	p := sdktrace.NewTracerProvider(o...)
	return &Provider{provider: p, sdk: p}
}

// Tracer returns the tracer for our own spans.
func (p *Provider) Tracer() trace.Tracer { return p.provider.Tracer(scope) }

// Calls returns a handler that creates a span for each call of a gRPC server, except for
// health checks. The parent is the client's span, if it sends one. Calls returns nil if the
// provider sends no spans.
func (p *Provider) Calls() stats.Handler {
	if p.sdk == nil {
		return nil
	}
	return otelgrpc.NewServerHandler(
		otelgrpc.WithTracerProvider(p.provider),
		otelgrpc.WithPropagators(propagation.TraceContext{}),
		otelgrpc.WithFilter(filters.Not(filters.HealthCheck())),
	)
}

// Run waits until ctx ends, and then sends the remaining spans.
func (p *Provider) Run(ctx context.Context) error {
	<-ctx.Done()
	if p.sdk == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	// A collector that is unavailable is no reason to fail on shutdown.
	_ = p.sdk.Shutdown(ctx)
	return nil
}
