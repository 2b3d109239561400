//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	"golang.org/x/net/websocket"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/load"
)

// speaks checks all protocols of routes, with backends of both kinds. The simple cases for services
// are in TestRoutes.
func speaks(t *testing.T, w *environment) {
	for name, addr := range map[string]string{"Services": "192.0.2.10:8000", "Endpoints": "192.0.2.20:10007"} {
		host := map[string]string{"Services": "services.example.com", "Endpoints": "endpoints.example.com"}[name]
		t.Run("HTTP1To"+name, func(t *testing.T) { t.Parallel(); w.answers(t, host, addr) })
		t.Run("HTTP2To"+name, func(t *testing.T) { t.Parallel(); w.answersHTTP2(t, host, addr, "HTTP/1.1") })
	}
	// The port requires HTTP/2 behind Envoy, too.
	t.Run("HTTP2Throughout", func(t *testing.T) {
		t.Parallel()
		w.answersHTTP2(t, "h2.example.com", "192.0.2.10:8003", "HTTP/2.0")
	})
	t.Run("WebSocketToServices", func(t *testing.T) { t.Parallel(); w.answersWebSocket(t, "ws.example.com", "192.0.2.10:8002") })
	t.Run("WebSocketToEndpoints", func(t *testing.T) {
		t.Parallel()
		w.answersWebSocket(t, "ws-endpoints.example.com", "192.0.2.20:10015")
	})
	t.Run("GRPCToServices", func(t *testing.T) { t.Parallel(); w.answersGRPC(t, "grpc.example.com", "192.0.2.10:8001") })
	t.Run("GRPCToEndpoints", func(t *testing.T) { t.Parallel(); w.answersGRPC(t, "grpc-endpoints.example.com", "192.0.2.20:10011") })
	t.Run("TCPToEndpoints", func(t *testing.T) { t.Parallel(); w.answersTCP(t, "127.0.0.1:8903", "192.0.2.20:10012") })
	t.Run("UDPToEndpoints", func(t *testing.T) { t.Parallel(); w.answersUDP(t, "127.0.0.1:8904", "192.0.2.20:10013") })
	// Two names on one port.
	t.Run("TLSToServices", func(t *testing.T) { t.Parallel(); w.answersTLS(t, "example.com", "192.0.2.10:9444") })
	t.Run("TLSToEndpoints", func(t *testing.T) { t.Parallel(); w.answersTLS(t, "endpoints.example.com", "192.0.2.20:10014") })
}

// answersHTTP2 waits for a response to an HTTP/2 client, from a backend to which Envoy uses this
// protocol.
func (w *environment) answersHTTP2(t *testing.T, host, backend, behind string) {
	t.Helper()
	p := &http.Protocols{}
	p.SetUnencryptedHTTP2(true)
	tr := &http.Transport{DialContext: w.Dial, Protocols: p}
	defer tr.CloseIdleConnections()
	err := w.Until(within(t), func(ctx context.Context) error {
		r := send(ctx, &http.Client{Transport: tr}, host)
		if r.err == nil && (r.backend != backend || r.spoken != "HTTP/2.0" || r.behind != behind) {
			r.err = errors.Errorf("%q answers with %s after %s, want %q with HTTP/2.0 after %s", r.backend, r.spoken, r.behind, backend, behind)
		}
		return r.err
	})
	if err != nil {
		t.Error(err)
	}
}

// answersWebSocket waits for several responses after an upgrade.
func (w *environment) answersWebSocket(t *testing.T, host, backend string) {
	t.Helper()
	err := w.Until(within(t), func(ctx context.Context) error {
		raw, err := w.Dial(ctx, "tcp", "127.0.0.1:8888")
		if err != nil {
			return err
		}
		defer raw.Close() // The exchange is complete.
		if err := raw.SetDeadline(time.Now().Add(limit)); err != nil {
			return err
		}
		at := &url.URL{Scheme: "ws", Host: host, Path: "/"}
		c, err := websocket.NewClient(&websocket.Config{Location: at, Origin: at, Version: websocket.ProtocolVersionHybi13}, raw)
		if err != nil {
			return err
		}
		for _, message := range []string{"one ", "two "} {
			if err := websocket.Message.Send(c, message); err != nil {
				return err
			}
			got := ""
			if err := websocket.Message.Receive(c, &got); err != nil {
				return err
			}
			if got != message+backend {
				return errors.Errorf("the response is %q, want %q", got, message+backend)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// serveWebSocket responds with the message and the address.
func (w *environment) serveWebSocket(t *testing.T, addr string) {
	t.Helper()
	w.serve(t, addr, websocket.Server{Handler: func(c *websocket.Conn) {
		for message := ""; websocket.Message.Receive(c, &message) == nil; {
			if websocket.Message.Send(c, message+addr) != nil {
				return
			}
		}
	}})
}

// answersGRPC checks a call, one that fails, and a stream, each with its trailers.
func (w *environment) answersGRPC(t *testing.T, host, backend string) {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///127.0.0.1:8888", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority(host),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return w.Dial(ctx, "tcp", addr) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, conn.Close()) })
	c := grpc_health_v1.NewHealthClient(conn)
	named := func(trailer metadata.MD) error {
		if got := trailer.Get(answeredBy); len(got) != 1 || got[0] != backend {
			return errors.Errorf("the trailer has %q, want %q", got, backend)
		}
		return nil
	}
	err = w.Until(within(t), func(ctx context.Context) error {
		trailer := metadata.MD{}
		if _, err := c.Check(ctx, &grpc_health_v1.HealthCheckRequest{}, grpc.Trailer(&trailer)); err != nil {
			return err
		}
		if err := named(trailer); err != nil {
			return err
		}
		trailer = metadata.MD{}
		_, err := c.Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: "unknown"}, grpc.Trailer(&trailer))
		if got := status.Code(err); got != codes.NotFound {
			return errors.Errorf("the call ends with %s, want %s", got, codes.NotFound)
		}
		return named(trailer)
	})
	if err != nil {
		t.Error(err)
	}
	stream, err := c.Watch(within(t), &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	received := 0
	for ; err == nil; received++ {
		_, err = stream.Recv()
	}
	// The last response was the end of the stream.
	if received--; !errors.Is(err, io.EOF) || received != messages {
		t.Errorf("the stream ends after %d messages with %v, want %d and its end", received, err, messages)
	}
	check(t, named(stream.Trailer()))
}

// answersTCP waits for a response with the address.
func (w *environment) answersTCP(t *testing.T, addr, backend string) {
	t.Helper()
	err := w.Until(within(t), func(ctx context.Context) error {
		c, err := w.Dial(ctx, "tcp", addr)
		if err != nil {
			return err
		}
		defer c.Close() // The connection is only read.
		b, err := io.ReadAll(c)
		if err == nil && string(b) != backend {
			err = errors.Errorf("the response is %q", b)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// answersUDP waits for a response with the message and the address.
func (w *environment) answersUDP(t *testing.T, addr, backend string) {
	t.Helper()
	err := w.Until(within(t), func(ctx context.Context) error {
		c, err := w.Dial(ctx, "udp", addr)
		if err != nil {
			return err
		}
		defer c.Close() // The connection is only read.
		if err := c.SetDeadline(time.Now().Add(time.Second)); err != nil {
			return err
		}
		if _, err := c.Write([]byte("udp ")); err != nil {
			return err
		}
		b := make([]byte, 1500)
		n, err := c.Read(b)
		if err == nil && string(b[:n]) != "udp "+backend {
			err = errors.Errorf("the response is %q", b[:n])
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// answersTLS waits for a response over TLS that Envoy passes through to the backend, with the
// backend's certificate.
func (w *environment) answersTLS(t *testing.T, name, backend string) {
	t.Helper()
	trusts, ok := w.tls[backend].Client().Transport.(*http.Transport)
	if !ok {
		t.Fatal("the backend's client has another type")
	}
	tr := &http.Transport{DialContext: w.Dial, TLSClientConfig: &tls.Config{RootCAs: trusts.TLSClientConfig.RootCAs, ServerName: name, MinVersion: tls.VersionTLS12}}
	defer tr.CloseIdleConnections()
	err := w.Until(within(t), func(ctx context.Context) error {
		got, err := load.Get(ctx, &http.Client{Transport: tr}, load.Target{URL: "https://127.0.0.1:8902/"})
		if err == nil && got != backend {
			err = errors.Errorf("%q answers, not %q", got, backend)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
