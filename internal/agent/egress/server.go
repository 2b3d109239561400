// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

const (
	// dialTimeout is how long a client waits for its target to be dialled.
	dialTimeout = 15 * time.Second

	// The maxDialling limits bound the connections that wait to be dialled: per port, so that a
	// target that does not answer does not block others, and in total.
	maxDialling    = 512
	maxDiallingAll = 2048

	// acceptPause is the pause after accept fails because the pod has no file descriptors left.
	acceptPause = 50 * time.Millisecond
)

// keepAlive detects clients that have vanished within two minutes.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 60 * time.Second, Interval: 15 * time.Second, Count: 4}

// A Dialer opens a connection into the tailnet. The error is localapi.ErrOutside when no device
// of the tailnet has the address.
type Dialer func(ctx context.Context, addr netip.AddrPort) (*localapi.Conn, error)

// A Phase is a stage in the life of a port.
type Phase int

const (
	// Serving accepts connections.
	Serving Phase = iota

	// Leaving accepts connections, and reports when none is left.
	Leaving

	// Draining accepts no connections, and reports when none is left.
	Draining
)

// A Route describes what to do with the connections of a port.
type Route struct {
	// Target is the name of the port's target in metrics.
	Target string

	// Addr is the target's address in the tailnet. Connections to a route without an address are
	// reset.
	Addr netip.AddrPort

	// Service reports whether the target is another cluster's part of a service, so that clients may find the
	// service elsewhere.
	Service bool

	Phase Phase
}

// A ListenFn listens on a port, at one or several addresses.
type ListenFn func(ctx context.Context, port uint16) ([]net.Listener, error)

// A Server listens on ports and carries their connections into the tailnet. Its methods are
// safe for concurrent use.
type Server struct {
	dial    Dialer
	listen  ListenFn
	changed func()
	metrics *Metrics
	log     logging.Logger

	// idle is how long a connection may carry no data. Zero means no limit.
	idle time.Duration

	// follow is the Follower of WithFollower. goneFor is how long its result may be false.
	follow  Follower
	goneFor time.Duration

	// tracer is that of WithTracer, or nil.
	tracer trace.Tracer

	// lateAfter, reportAfter, confirmAfter, waitLimit and redial decide about targets that do not answer.
	lateAfter, reportAfter, confirmAfter, waitLimit time.Duration
	redial                                          wait.Backoff

	dialling chan struct{}
	wg       sync.WaitGroup

	mu    sync.Mutex
	ports map[uint16]*port
}

// A ServerOption configures a Server.
type ServerOption func(*Server)

// WithListen makes the Server listen with fn. The default is ListenAt with all addresses.
func WithListen(fn ListenFn) ServerOption {
	return func(s *Server) { s.listen = fn }
}

// WithIdleTimeout cuts connections that have carried no data for the duration d. Zero means no
// limit.
func WithIdleTimeout(d time.Duration) ServerOption {
	return func(s *Server) { s.idle = d }
}

// A Follower returns a function that reports where the netmap has the node of a connection that was just
// opened to addr.
type Follower func(addr netip.Addr) (presence func() localapi.Presence)

// WithFollower makes CutGone cut connections whose address no node has had for the duration d, or another node has.
func WithFollower(f Follower, d time.Duration) ServerOption {
	return func(s *Server) { s.follow, s.goneFor = f, d }
}

// NewServer returns a Server without ports. It calls changed from separate goroutines when the
// results of Idle, Outside or Unanswered may have changed for a port.
func NewServer(d Dialer, m *Metrics, log logging.Logger, changed func(), o ...ServerOption) *Server {
	s := &Server{
		dial:     d,
		listen:   ListenAt(),
		follow:   func(netip.Addr) func() localapi.Presence { return func() localapi.Presence { return localapi.Present } },
		changed:  changed,
		metrics:  m,
		log:      log,
		dialling: make(chan struct{}, maxDiallingAll),
		ports:    make(map[uint16]*port),

		lateAfter:    lateAfter,
		reportAfter:  reportAfter,
		confirmAfter: confirmAfter,
		waitLimit:    waitLimit,
		redial:       redial(),
	}
	for _, fn := range o {
		fn(s)
	}
	return s
}

// ListenAt returns a function that listens on ports of addresses, or of all addresses if there
// are none. A pod must pass its addresses: tailscaled forwards connections to the machine's address
// in the tailnet to the same port on loopback, so that clients in the tailnet would bypass every
// NetworkPolicy.
func ListenAt(hosts ...string) ListenFn {
	if len(hosts) == 0 {
		hosts = []string{""}
	}
	return func(ctx context.Context, port uint16) ([]net.Listener, error) {
		lc := net.ListenConfig{KeepAliveConfig: keepAlive, Control: limitUnacknowledged}
		out := make([]net.Listener, 0, len(hosts))
		for _, h := range hosts {
			l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(h, strconv.Itoa(int(port))))
			if err != nil {
				closeAll(out)
				return nil, errors.Wrap(err, "cannot listen")
			}
			out = append(out, l)
		}
		return out, nil
	}
}

// closeAll closes listeners. An error means that one was already closed.
func closeAll(ls []net.Listener) {
	for _, l := range ls {
		_ = l.Close()
	}
}

// Set replaces the ports to serve, until ctx is done. Connections of a port that is not in
// routes are cut. Connections of a port that now leads to another target stay open. Set returns
// the errors of ports that it cannot listen on; the caller can call Set again to retry.
func (s *Server) Set(ctx context.Context, routes map[uint16]Route) map[uint16]error {
	s.mu.Lock()
	defer s.mu.Unlock()

	for n, p := range s.ports {
		if _, ok := routes[n]; !ok {
			p.close()
			delete(s.ports, n)
			s.metrics.forget(p.route().Target)
		}
	}
	failed := make(map[uint16]error)
	for n, r := range routes {
		p := s.ports[n]
		if p == nil {
			p = newPort(s, n)
			s.ports[n] = p
		}
		old, reopens := p.set(r)
		if old != "" && old != r.Target {
			s.metrics.forget(old)
		}
		if reopens {
			s.wg.Go(s.changed)
		}
		if r.Phase == Draining {
			p.stopListening()
			continue
		}
		if p.open() {
			continue
		}
		ls, err := s.listen(ctx, n)
		if err != nil {
			failed[n] = errors.Wrapf(err, "cannot listen on port %d", n)
			continue
		}
		p.start(ctx, ls)
	}
	return failed
}

// Idle reports whether a port has no connections.
func (s *Server) Idle(n uint16) bool {
	p := s.port(n)
	return p == nil || p.idle()
}

// Outside reports whether tailscaled, at the last attempt, would have dialled the port's target
// outside of the tailnet.
func (s *Server) Outside(n uint16) bool {
	p := s.port(n)
	return p != nil && p.isOutside()
}

// Unanswered reports whether a port has refused connections for 10 s because its target does not answer.
func (s *Server) Unanswered(n uint16) bool {
	p := s.port(n)
	return p != nil && p.silentFor() >= s.reportAfter
}

func (s *Server) port(n uint16) *port {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ports[n]
}

// Cut cuts all connections. The ports stay as they are.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.ports {
		cutAll(p)
	}
}

// Close cuts all connections, and returns when all goroutines have ended.
func (s *Server) Close() {
	s.mu.Lock()
	for _, p := range s.ports {
		p.close()
	}
	s.ports = make(map[uint16]*port)
	s.mu.Unlock()
	s.wg.Wait()
}
