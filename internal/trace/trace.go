// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package trace sends spans to an OpenTelemetry collector, if one is configured. The packages that create
// spans describe them: the extension's hooks for each hook, its eds for each push of endpoints, and the
// agent's egress for each dial.
package trace

import (
	"context"
	"crypto/x509"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc/credentials"

	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
)

const (
	// scope is the name of the instrumentation scope of our spans.
	scope = products.Module

	// flushTimeout is how long the last spans may take at the end.
	flushTimeout = 2 * time.Second
)

// A Provider creates spans. Without an endpoint it creates none, at no cost.
type Provider struct {
	provider trace.TracerProvider
	sdk      *sdktrace.TracerProvider
}

// New returns a provider that sends the spans of a service by OTLP over gRPC to endpoint: HOST:PORT
// without TLS, or http:// or https:// with a host and a port. The authorities verify the collector's
// certificate; nil means those of the system. If endpoint is empty, the provider sends nothing. New does
// not wait for the collector. Spans that cannot be sent are dropped.
func New(ctx context.Context, endpoint, service, version string, authorities *x509.CertPool) (*Provider, error) {
	if endpoint == "" {
		return &Provider{provider: noop.NewTracerProvider()}, nil
	}
	opts := []otlptracegrpc.Option{otlptracegrpc.WithEndpointURL(endpoint)}
	if !strings.Contains(endpoint, "://") {
		opts = []otlptracegrpc.Option{otlptracegrpc.WithEndpoint(endpoint), otlptracegrpc.WithInsecure()}
	}
	if authorities != nil && strings.HasPrefix(endpoint, "https://") {
		opts = append(opts, otlptracegrpc.WithTLSCredentials(credentials.NewClientTLSFromCert(authorities, "")))
	}
	exporter, err := otlptracegrpc.New(ctx, opts...)
	if err != nil {
		return nil, errors.Wrapf(err, "cannot send traces to %q", endpoint)
	}
	return NewProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(resource.NewSchemaless(
		attribute.String("service.name", service),
		attribute.String("service.version", version),
	))), nil
}

// NewProvider returns a provider with options of the SDK.
func NewProvider(o ...sdktrace.TracerProviderOption) *Provider {
	p := sdktrace.NewTracerProvider(o...)
	return &Provider{provider: p, sdk: p}
}

// Tracer returns the tracer for our own spans.
func (p *Provider) Tracer() trace.Tracer { return p.provider.Tracer(scope) }

// Sends reports whether the provider sends spans.
func (p *Provider) Sends() bool { return p.sdk != nil }

// TracerProvider returns the provider as instrumentation libraries take it.
func (p *Provider) TracerProvider() trace.TracerProvider { return p.provider }

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
