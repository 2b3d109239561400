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

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
)

const (
	// dialTimeout is how long a client waits for its target.
	dialTimeout = 15 * time.Second

	// maxDialling bounds connections that are not dialled yet: of one port, so
	// that a target that does not answer takes nothing from others, and of all.
	maxDialling    = 512
	maxDiallingAll = 2048

	// acceptPause is for a pod that has no file descriptors left.
	acceptPause = 50 * time.Millisecond
)

// keepAlive finds clients that have gone without a word within two minutes.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 60 * time.Second, Interval: 15 * time.Second, Count: 4}

// A Dialer opens a connection into the tailnet. Its error is localapi.ErrOutside
// when nobody in the tailnet has the address.
type Dialer func(ctx context.Context, addr netip.AddrPort) (*localapi.Conn, error)

// A Phase of a port's life.
type Phase int

const (
	// Serving takes connections.
	Serving Phase = iota

	// Leaving takes connections, and says when there are none any more.
	Leaving

	// Draining takes no more connections, and says when there are none any more.
	Draining
)

// A Route says what to do with the connections of a port.
type Route struct {
	// Target names what the port leads to, in metrics.
	Target string

	// Addr in the tailnet. Connections to a route without one are reset.
	Addr netip.AddrPort

	Phase Phase
}

// A Server listens on ports and carries their connections into the tailnet. All
// methods may be called from several goroutines.
type Server struct {
	dial    Dialer
	listen  func(ctx context.Context, port uint16) (net.Listener, error)
	changed func()
	metrics *Metrics
	log     logging.Logger

	// idle is how long a connection may carry nothing. Zero is for ever.
	idle time.Duration

	dialling chan struct{}
	wg       sync.WaitGroup

	mu    sync.Mutex
	ports map[uint16]*port
}

// A ServerOption configures a Server.
type ServerOption func(*Server)

// WithListen has fn listen on ports, in place of ListenAt all addresses.
func WithListen(fn func(ctx context.Context, port uint16) (net.Listener, error)) ServerOption {
	return func(s *Server) { s.listen = fn }
}

// WithIdleTimeout cuts connections that have carried nothing for as long as d. Zero cuts
// none.
func WithIdleTimeout(d time.Duration) ServerOption {
	return func(s *Server) { s.idle = d }
}

// NewServer returns a Server without ports. It calls changed, from goroutines of
// its own, when Idle or Outside of a port may have changed.
func NewServer(d Dialer, m *Metrics, log logging.Logger, changed func(), o ...ServerOption) *Server {
	s := &Server{
		dial:     d,
		listen:   ListenAt(""),
		changed:  changed,
		metrics:  m,
		log:      log,
		dialling: make(chan struct{}, maxDiallingAll),
		ports:    make(map[uint16]*port),
	}
	for _, fn := range o {
		fn(s)
	}
	return s
}

// ListenAt returns a function that listens on ports of an address, or of all
// addresses if it is empty. A pod must name its own: tailscaled leads who connects to
// the machine's address in the tailnet to the same port of the loopback, and so from
// the tailnet past every NetworkPolicy.
func ListenAt(host string) func(ctx context.Context, port uint16) (net.Listener, error) {
	return func(ctx context.Context, port uint16) (net.Listener, error) {
		lc := net.ListenConfig{KeepAliveConfig: keepAlive, Control: limitUnacknowledged}
		return lc.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(int(port))))
	}
}

// Set makes routes the ports to serve, until ctx ends. Connections of a port that
// is not among them are cut; those of one that leads elsewhere now stay as they
// are. It returns why ports cannot be listened on; Set may be called again then.
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
			p = newPort(s)
			s.ports[n] = p
		}
		if old := p.set(r); old != "" && old != r.Target {
			s.metrics.forget(old)
		}
		if r.Phase == Draining {
			p.stopListening()
			continue
		}
		if p.listening() {
			continue
		}
		l, err := s.listen(ctx, n)
		if err != nil {
			failed[n] = errors.Wrapf(err, "cannot listen on port %d", n)
			continue
		}
		p.start(ctx, l)
	}
	return failed
}

// Idle reports whether a port has no connections.
func (s *Server) Idle(n uint16) bool {
	p := s.port(n)
	return p == nil || p.idle()
}

// Outside reports whether tailscaled would have dialled the port's target outside of
// the tailnet when it was last asked to.
func (s *Server) Outside(n uint16) bool {
	p := s.port(n)
	return p != nil && p.isOutside()
}

func (s *Server) port(n uint16) *port {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ports[n]
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
