//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/tailscale-gateway/tailscale-gateway/extension/serve"
	"github.com/tailscale-gateway/tailscale-gateway/test/standalone"
)

const (
	// dropped is how long packets are. TCP repeats what was lost in the first moment after
	// 51 and after 102 seconds.
	dropped = 65 * time.Second

	// heard is how long after that a client may take to go on.
	heard = 12 * time.Second
)

// TestDropped has packets between a server of hooks and clients that have no keepalive be
// dropped, while one waits for its answer and before another asks.
func TestDropped(t *testing.T) {
	t.Parallel()
	g, err := standalone.Start(t.Context(), standalone.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, g.Stop()) })
	pod, err := g.NewPod(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, pod.Close()) })
	l, err := pod.Listen(t.Context(), 5005)
	if err != nil {
		t.Fatal(err)
	}
	asked, answer := make(chan struct{}), make(chan struct{})
	s := serve.NewServer(serve.Options{
		Credentials: insecure.NewCredentials(), Patient: true,
		Interceptor: func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			if r, ok := req.(*grpc_health_v1.HealthCheckRequest); ok && r.GetService() == "answer" {
				asked <- struct{}{}
				<-answer
			}
			return next(ctx, req)
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, l, 0) }()
	t.Cleanup(func() {
		cancel()
		check(t, <-done)
	})
	// call in the background, and tell when it has ended, however it did: its client asks
	// again then.
	call := func(c grpc_health_v1.HealthClient, service string) <-chan time.Time {
		ended := make(chan time.Time, 1)
		go func() {
			_, err := c.Check(context.Background(), &grpc_health_v1.HealthCheckRequest{Service: service})
			t.Logf("the call %q ends: %v", service, err)
			ended <- time.Now()
		}()
		return ended
	}
	clients := [2]grpc_health_v1.HealthClient{}
	for i := range clients {
		clients[i] = hookClient(t, g, l.Addr().String())
		if _, err := clients[i].Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}); err != nil {
			t.Fatal(err)
		}
	}

	waits := call(clients[0], "answer")
	<-asked
	if err := pod.Drop(); err != nil {
		t.Fatal(err)
	}
	close(answer)
	asks := call(clients[1], "ask")
	pause(t, dropped)
	if err := pod.Pass(); err != nil {
		t.Fatal(err)
	}
	passed := time.Now()
	for name, ended := range map[string]<-chan time.Time{"waited": waits, "asked": asks} {
		select {
		case at := <-ended:
			t.Logf("the client that %s goes on %s after packets pass", name, at.Sub(passed).Round(time.Millisecond))
			if at.Sub(passed) > heard {
				t.Errorf("the client that %s goes on late", name)
			}
		case <-time.After(limit):
			t.Errorf("the client that %s goes on never", name)
		}
	}
}

// hookClient is one as Envoy Gateway's: it has no keepalive, nor a deadline.
func hookClient(t *testing.T, g *standalone.Gateway, address string) grpc_health_v1.HealthClient {
	t.Helper()
	c, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return g.Dial(ctx, "tcp", addr)
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, c.Close()) })
	return grpc_health_v1.NewHealthClient(c)
}
