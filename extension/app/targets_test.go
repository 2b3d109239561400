// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// TestManyTargets opens a connection for each of an Envoy's targets, as Envoy does with TLS. All
// must stay open together.
func TestManyTargets(t *testing.T) {
	const targets = 300
	s := newEndpointServer(insecure.NewCredentials())
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, l, 0) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run(...): %v", err)
		}
	}()

	for i := range targets {
		conn, err := grpc.NewClient("passthrough:///"+l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		if _, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil {
			t.Fatalf("connection %d of an address is not served: %v", i+1, err)
		}
	}
}
