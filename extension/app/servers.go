// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"net"

	pb "github.com/envoyproxy/gateway/proto/extension"
	"google.golang.org/grpc/credentials"

	"github.com/tailscale-gateway/tailscale-gateway/extension/explain"
	"github.com/tailscale-gateway/tailscale-gateway/extension/hooks"
	"github.com/tailscale-gateway/tailscale-gateway/extension/serve"
)

const (
	// edsStreams is the number of targets that an Envoy may have. Each has a stream, and with TLS a
	// connection as well: gRPC shares connections only between equal credentials, and those of two
	// clusters are never equal (cmp_impl of SslCredentials in gRPC's
	// src/core/credentials/transport/ssl).
	edsStreams = 16 << 10

	// edsConnections is the number of connections of all Envoys. One address may have a half.
	edsConnections = 2 * edsStreams

	// edsBuffer is the size of a connection's read and write buffers, in bytes: endpoint lists are
	// small, and connections many.
	edsBuffer = 4 << 10
)

// listeners are opened before anything is served, so that a port in use is an error at once.
type listeners struct {
	hooks, eds, observe net.Listener
}

func listen(ctx context.Context, o Options) (*listeners, error) {
	l := &listeners{}
	for _, socket := range []struct {
		listener *net.Listener
		address  string
	}{
		{&l.observe, o.ObserveAddress},
		{&l.hooks, o.HooksAddress},
		{&l.eds, o.EDSAddress},
	} {
		var err error
		if *socket.listener, err = serve.Listen(ctx, socket.address); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// newHookServer returns a server for Envoy Gateway, which stores settings of translations.
func (a *app) newHookServer(settings *explain.Settings) *serve.Server {
	out := serve.NewServer(serve.Options{
		Credentials: serve.Credentials(a.certs.Hooks, a.certs.HooksClients),
		MaxMessage:  cmp.Or(a.options.HooksMaxMessage, serve.HookMessage),
		Interceptor: a.observer.Interceptor,
		Stats:       serve.TraceCalls(a.traces),
		// Envoy Gateway has neither keepalive nor deadline.
		Patient: true,
	})
	pb.RegisterEnvoyGatewayExtensionServer(out, hooks.NewServer(a.store, a.certs.Source,
		hooks.WithLogger(a.log),
		hooks.WithRecorder(hooks.RecorderFn(func(t hooks.Translation) {
			settings.Translated(t.Gateway, t.Settings)
			a.observer.Translated(t.Gateway, t.Outcomes(a.objects.Translated(t)))
		})),
	))
	return out
}

// newEndpointServer returns a server for Envoys, without services.
func newEndpointServer(c credentials.TransportCredentials) *serve.Server {
	return serve.NewServer(serve.Options{Credentials: c, MaxStreams: edsStreams, MaxConnections: edsConnections, Buffer: edsBuffer})
}
