// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package trace sends spans to a collector of OpenTelemetry, for who asks for it. What
// spans there are is told where they are made: a hook in package hooks, a push of
// endpoints in package eds.
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
	// scope of our spans.
	scope = "github.com/tailscale-gateway/tailscale-gateway/extension"

	// flushTimeout is how long the last spans may take at the end.
	flushTimeout = 2 * time.Second
)

// A Provider makes spans. That of no endpoint makes none, at no cost.
type Provider struct {
	provider trace.TracerProvider
	sdk      *sdktrace.TracerProvider
}

// New returns a provider that sends spans by OTLP over gRPC to endpoint: HOST:PORT
// without TLS, or http:// or https:// with a host and a port. Empty means nowhere. It
// does not wait for the collector; spans that cannot be sent are dropped.
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

// Tracer of our own spans.
func (p *Provider) Tracer() trace.Tracer { return p.provider.Tracer(scope) }

// Calls makes a span of each call that a gRPC server answers, except for health. Spans of
// a client that has some are their parents. Nil if there are none.
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

// Run until ctx ends, then send what is left.
func (p *Provider) Run(ctx context.Context) error {
	<-ctx.Done()
	if p.sdk == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	// A collector that is away is no reason to fail at the end.
	_ = p.sdk.Shutdown(ctx)
	return nil
}
