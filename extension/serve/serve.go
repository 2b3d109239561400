// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package serve runs gRPC servers: their address, credentials, keepalives, health service, and
// shutdown. Packages hooks and eds implement the services.
package serve

import (
	"cmp"
	"context"
	"io/fs"
	"math"
	"net"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/stats"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

const (
	// HookMessage is the default limit of a hook's message, in bytes: a Gateway has some 800 for
	// each route, and its certificates. Envoy Gateway's counterpart is its
	// extensionManager.maxMessageSize.
	HookMessage = 256 << 20

	// maxMessage is the default limit of a client's message, which is gRPC's own. A name takes some
	// 100 bytes, so a message has some 20,000 of them.
	maxMessage = 4 << 20

	// minPing is the shortest permitted interval of clients' pings, with or without a call. Envoys
	// ping every 10 s; gRPC's default limit is 5 minutes.
	minPing = 5 * time.Second

	// These two together are the time until the server detects a lost client.
	pingTime    = 20 * time.Second
	pingTimeout = 10 * time.Second

	// maxHeaders is the greatest size of a call's headers in bytes. Usual calls have some hundreds.
	maxHeaders = 16 << 10

	// handshakeTimeout is the time that a client has for its TLS handshake.
	handshakeTimeout = 10 * time.Second

	// infinity is the interval that makes gRPC leave connections alone.
	infinity = time.Duration(math.MaxInt64)

	// stopTimeout is the time for calls that still run at shutdown. Streams of endpoints never end
	// by themselves: Envoys keep their endpoints, and connect to another replica.
	stopTimeout = 2 * time.Second

	unixPrefix = "unix:"
)

// Options of a Server.
type Options struct {
	// Credentials of the server.
	Credentials credentials.TransportCredentials

	// MaxMessage is the greatest size of a client's message in bytes. Zero means 4 MiB.
	MaxMessage int

	// MaxStreams is the number of concurrent calls of a connection. Further ones wait. Zero means
	// no limit.
	MaxStreams uint32

	// MaxConnections is the number of open connections, of which one address may have a half. Zero
	// means no limit.
	MaxConnections int

	// Buffer is the size of a connection's read and write buffers, in bytes. Zero means gRPC's 32
	// KiB each.
	Buffer int

	// Interceptor of calls. May be nil.
	Interceptor grpc.UnaryServerInterceptor

	// Stats handles events of all calls. May be nil.
	Stats stats.Handler

	// Patient is for clients without a keepalive. After dropped packets such a client continues as
	// soon as packets pass again.
	Patient bool
}

// A Server is a gRPC server with the health service.
type Server struct {
	*grpc.Server

	health         *health.Server
	patient        bool
	maxConnections int
}

// NewServer returns a server with the health service only.
func NewServer(o Options) *Server {
	opts := []grpc.ServerOption{
		grpc.Creds(o.Credentials),
		grpc.MaxRecvMsgSize(cmp.Or(o.MaxMessage, maxMessage)),
		grpc.MaxSendMsgSize(max(o.MaxMessage, HookMessage)),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
		grpc.KeepaliveParams(o.keepalive()),
	}
	if o.MaxStreams > 0 {
		opts = append(opts, grpc.MaxConcurrentStreams(o.MaxStreams))
	}
	if o.Buffer > 0 {
		opts = append(opts, grpc.ReadBufferSize(o.Buffer), grpc.WriteBufferSize(o.Buffer))
	}
	if o.Interceptor != nil {
		opts = append(opts, grpc.UnaryInterceptor(o.Interceptor))
	}
	if o.Stats != nil {
		opts = append(opts, grpc.StatsHandler(o.Stats))
	}
	s := &Server{Server: grpc.NewServer(opts...), health: health.NewServer(), patient: o.Patient, maxConnections: o.MaxConnections}
	healthpb.RegisterHealthServer(s.Server, s.health)
	return s
}

// keepalive returns the parameters of keepalives. With keepalives gRPC also makes the kernel give
// up data that a client does not acknowledge in time, which a client without keepalives never
// learns.
func (o Options) keepalive() keepalive.ServerParameters {
	if o.Patient {
		return keepalive.ServerParameters{Time: infinity}
	}
	return keepalive.ServerParameters{Time: pingTime, Timeout: pingTimeout}
}

// Run serves until ctx ends. Then the health service reports NOT_SERVING, and the server answers
// calls for the time of drain, until clients have noticed.
func (s *Server) Run(ctx context.Context, l net.Listener, drain time.Duration) error {
	if s.patient {
		l = patientListener{l}
	}
	if s.maxConnections > 0 {
		l = limited(l, s.maxConnections)
	}
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(l) }()

	select {
	case err := <-failed:
		return errors.Wrapf(err, "cannot serve gRPC on %q", l.Addr())
	case <-ctx.Done():
	}
	s.health.Shutdown()
	select {
	case err := <-failed:
		return errors.Wrapf(err, "cannot serve gRPC on %q", l.Addr())
	case <-time.After(drain):
	}

	stop := time.AfterFunc(stopTimeout, s.Stop)
	defer stop.Stop()
	s.GracefulStop()
	return nil
}

// Listen listens on HOST:PORT, or on a Unix socket as unix:PATH. It replaces a socket that an
// earlier process left.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	path, ok := strings.CutPrefix(address, unixPrefix)
	if !ok {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		return l, errors.Wrapf(err, "cannot listen on %q", address)
	}
	info, err := os.Lstat(path)
	switch {
	case err == nil && info.Mode().Type() == fs.ModeSocket:
		if err := os.Remove(path); err != nil {
			return nil, errors.Wrapf(err, "cannot remove socket %q", path)
		}
	case err == nil:
		return nil, errors.Errorf("cannot listen on %q: it exists, and is no socket", path)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, errors.Wrapf(err, "cannot inspect %q", path)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	return l, errors.Wrapf(err, "cannot listen on %q", address)
}

// Local reports whether an address of Listen is reachable from this machine only.
func Local(address string) bool {
	if strings.HasPrefix(address, unixPrefix) {
		return true
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
