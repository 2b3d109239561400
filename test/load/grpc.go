// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"net"
	"net/url"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// GRPC holds the options of a client that calls gRPC's service for health checks, without TLS. Like a client of HTTP, it
// keeps its connection until a call is lost.
type GRPC struct {
	// Target is the server: only the address in its URL counts.
	Target Target

	// Dial opens a connection.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Clients returns the client of a worker.
func (o GRPC) Clients(int) Client { return &grpcClient{GRPC: o} }

type grpcClient struct {
	GRPC

	// conn is nil if there is no connection.
	conn *grpc.ClientConn
}

func (c *grpcClient) Send(ctx context.Context, _ int) (string, error) {
	if c.conn == nil {
		u, err := url.Parse(c.Target.URL)
		if err != nil {
			return "", errors.Wrap(err, "cannot parse the URL")
		}
		c.conn, err = grpc.NewClient("passthrough:///"+hostPort(u), grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return c.Dial(ctx, "tcp", addr) }))
		if err != nil {
			return "", errors.Wrap(err, "cannot make a client of gRPC")
		}
	}
	answer, err := grpc_health_v1.NewHealthClient(c.conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		// gRPC would keep a connection that carries nothing, and pause between attempts to connect.
		c.Close()
		return "", errors.Wrap(err, "cannot call")
	}
	if s := answer.GetStatus(); s != grpc_health_v1.HealthCheckResponse_SERVING {
		return "", errors.Errorf("%s answered %s", c.Target, s)
	}
	return answer.GetStatus().String(), nil
}

func (c *grpcClient) Close() {
	if c.conn == nil {
		return
	}
	_ = c.conn.Close() // The client gives it up in any case.
	c.conn = nil
}
