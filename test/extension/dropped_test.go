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
	// dropped is how long packets are dropped. TCP retransmits the first lost packet after 51 and
	// after 102 seconds.
	dropped = 65 * time.Second

	// heard is how long after that a client may take to continue.
	heard = 12 * time.Second
)

// TestDropped drops packets between a server of hooks and clients without keepalives, during the
// call of one client and before the call of another.
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
	called, answer := make(chan struct{}), make(chan struct{})
	s := serve.NewServer(serve.Options{
		Credentials: insecure.NewCredentials(), Patient: true,
		Interceptor: func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			if r, ok := req.(*grpc_health_v1.HealthCheckRequest); ok && r.GetService() == "answer" {
				called <- struct{}{}
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
	// call runs a call in the background, and signals its end with any result: its client then
	// calls again.
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
	<-called
	if err := pod.Drop(); err != nil {
		t.Fatal(err)
	}
	close(answer)
	calls := call(clients[1], "ask")
	pause(t, dropped)
	if err := pod.Pass(); err != nil {
		t.Fatal(err)
	}
	passed := time.Now()
	for name, ended := range map[string]<-chan time.Time{"waited": waits, "called": calls} {
		select {
		case at := <-ended:
			t.Logf("the client that %s continues %s after packets pass", name, at.Sub(passed).Round(time.Millisecond))
			if at.Sub(passed) > heard {
				t.Errorf("the client that %s continues late", name)
			}
		case <-time.After(limit):
			t.Errorf("the client that %s does not continue", name)
		}
	}
}

// hookClient returns a client like Envoy Gateway's, without keepalives and deadlines.
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
