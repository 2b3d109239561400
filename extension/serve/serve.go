// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package serve runs gRPC servers: their address, credentials, keepalives, health
// service, and how they end. What they answer lives in packages hooks and eds.
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
	// HookMessage is how much of a Gateway fits into one hook, in bytes: some 800 a
	// route, beside certificates. Envoy Gateway's side is its
	// extensionManager.maxMessageSize.
	HookMessage = 256 << 20

	// maxMessage is what a client may send at once where nothing else is said: gRPC's
	// own limit. A name takes some 100 bytes, so that is some 20,000 of them.
	maxMessage = 4 << 20

	// minPing is how often clients may ping without being sent away, with or
	// without a call. Envoys are told to do so every 10 s; gRPC's own limit is 5
	// minutes.
	minPing = 5 * time.Second

	// A client that went away without a word is noticed after these two together.
	pingTime    = 20 * time.Second
	pingTimeout = 10 * time.Second

	// maxHeaders is how many bytes of headers a call may have. Ours have some hundreds.
	maxHeaders = 16 << 10

	// handshakeTimeout is how long a client may take until it has shown its certificate.
	handshakeTimeout = 10 * time.Second

	// never is how gRPC is told to leave connections alone.
	never = time.Duration(math.MaxInt64)

	// stopTimeout is for calls that run when all else has ended. Streams of
	// endpoints never end by themselves: Envoys keep what they have, and go to
	// another replica.
	stopTimeout = 2 * time.Second

	unixPrefix = "unix:"
)

// Options of a Server.
type Options struct {
	// Credentials that clients are met with.
	Credentials credentials.TransportCredentials

	// MaxMessage is how many bytes a client may send at once. Zero means 4 MiB.
	MaxMessage int

	// MaxStreams is how many calls a connection may have open. Further ones wait. Zero
	// means any number.
	MaxStreams uint32

	// MaxConnections is how many may be open, of which an address may have a half.
	// Zero means any number.
	MaxConnections int

	// Buffer is how many bytes a connection reads at once, and writes. Zero means gRPC's
	// 32 KiB each.
	Buffer int

	// Interceptor of calls. May be nil.
	Interceptor grpc.UnaryServerInterceptor

	// Stats hears of all calls. May be nil.
	Stats stats.Handler

	// Patient is for clients that have no keepalive of their own. When packets to one were
	// dropped for a while, it is to hear of it at once when they pass again.
	Patient bool
}

// A Server is a gRPC server with the health service.
type Server struct {
	*grpc.Server

	health         *health.Server
	patient        bool
	maxConnections int
}

// NewServer returns one that serves nothing yet but health.
func NewServer(o Options) *Server {
	opts := []grpc.ServerOption{
		grpc.Creds(o.Credentials),
		grpc.MaxRecvMsgSize(cmp.Or(o.MaxMessage, maxMessage)),
		grpc.MaxSendMsgSize(HookMessage),
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

// keepalive of connections. With any, gRPC also has the kernel give up what a client does
// not acknowledge in time, which a client without its own never hears of.
func (o Options) keepalive() keepalive.ServerParameters {
	if o.Patient {
		return keepalive.ServerParameters{Time: never}
	}
	return keepalive.ServerParameters{Time: pingTime, Timeout: pingTimeout}
}

// Run serves until ctx ends. From then on health is not serving, but calls are
// answered for the time of drain, until clients have heard of it.
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

// Listen on HOST:PORT, or on a socket as unix:PATH. A socket that an earlier process
// left is replaced.
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
		return nil, errors.Errorf("cannot listen on %q: it is there, and is no socket", path)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, errors.Wrapf(err, "cannot look at %q", path)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	return l, errors.Wrapf(err, "cannot listen on %q", address)
}

// Local reports whether an address as of Listen is of this machine alone.
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
