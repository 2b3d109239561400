// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
)

// A port of the pod, its listener and its connections.
type port struct {
	server *Server

	mu       sync.Mutex
	r        Route
	listener net.Listener
	cancel   context.CancelFunc
	conns    map[net.Conn]context.CancelFunc
	dialling int
	outside  bool
	closed   bool
}

func newPort(s *Server) *port {
	return &port{server: s, conns: make(map[net.Conn]context.CancelFunc)}
}

func (p *port) route() Route {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.r
}

// set makes r the route, and returns the target of the one before.
func (p *port) set(r Route) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.r.Target
	if p.r.Addr != r.Addr {
		p.outside = false
	}
	p.r = r
	return old
}

func (p *port) listening() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.listener != nil
}

func (p *port) idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns) == 0
}

func (p *port) isOutside() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.outside
}

// start takes connections from l.
func (p *port) start(ctx context.Context, l net.Listener) {
	ctx, cancel := context.WithCancel(ctx)
	p.mu.Lock()
	p.listener, p.cancel = l, cancel
	p.mu.Unlock()
	// An error means that the listener was closed before.
	context.AfterFunc(ctx, func() { _ = l.Close() })
	p.server.wg.Go(func() { p.accept(ctx, l) })
}

func (p *port) stopListening() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener == nil {
		return
	}
	// An error does not matter: no client connects any more.
	_ = p.listener.Close()
	p.cancel()
	p.listener, p.cancel = nil, nil
}

// close stops to listen and cuts all connections.
func (p *port) close() {
	p.stopListening()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, cut := range p.conns {
		cut()
	}
}

func (p *port) accept(ctx context.Context, l net.Listener) {
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			p.server.log.Info("Cannot accept connection", "address", l.Addr().String(), "error", err)
			select {
			case <-ctx.Done():
				return
			case <-time.After(acceptPause):
			}
			continue
		}
		client, ok := c.(*net.TCPConn)
		if !ok {
			// Listeners of TCP accept nothing else.
			_ = c.Close()
			continue
		}
		p.server.wg.Go(func() { p.serve(context.WithoutCancel(ctx), client) })
	}
}

// serve carries one connection, which outlives its listener.
func (p *port) serve(ctx context.Context, client *net.TCPConn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, ok := p.admit(client, cancel)
	if !ok {
		p.refuse(r.Target, reasonBusy)
		reset(client)
		return
	}
	defer p.release(client)

	target, reason, err := p.connect(ctx, r)
	if err != nil {
		p.server.log.Debug("Refused connection", "target", r.Target, "reason", reason, "error", err)
		p.refuse(r.Target, reason)
		reset(client)
		return
	}
	counted, known := p.opened(r.Target)
	if p.server.idle > 0 {
		go cutIdle(ctx, client, p.server.idle, cancel)
	}
	up, down := carry(ctx, client, target)
	if known {
		counted.closed(up, down)
	}
}

// opened counts a connection, unless the port leads to its target no more: the target's
// metrics are forgotten then, or about to be.
func (p *port) opened(target string) (carried, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.leadsTo(target) {
		return carried{}, false
	}
	return p.server.metrics.open(target), true
}

// refuse counts a connection that is refused, as opened does.
func (p *port) refuse(target, reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.leadsTo(target) {
		p.server.metrics.refuse(target, reason)
	}
}

// leadsTo reports whether the port still leads to a target. The caller has the lock.
func (p *port) leadsTo(target string) bool { return !p.closed && p.r.Target == target }

// admit notes a connection. It returns false when too many are not dialled yet, or
// when the port is closed.
func (p *port) admit(client net.Conn, cut context.CancelFunc) (Route, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.dialling >= maxDialling {
		return p.r, false
	}
	select {
	case p.server.dialling <- struct{}{}:
	default:
		return p.r, false
	}
	p.dialling++
	p.conns[client] = cut
	return p.r, true
}

// release forgets a connection that has ended.
func (p *port) release(client net.Conn) {
	p.mu.Lock()
	delete(p.conns, client)
	tell := len(p.conns) == 0 && p.r.Phase != Serving
	p.mu.Unlock()
	if tell {
		p.server.changed()
	}
}

// connect dials the target. It returns why it failed, for metrics.
func (p *port) connect(ctx context.Context, r Route) (*localapi.Conn, string, error) {
	defer func() {
		<-p.server.dialling
		p.mu.Lock()
		p.dialling--
		p.mu.Unlock()
	}()
	if !r.Addr.IsValid() {
		return nil, reasonNoHost, errors.New("nobody in the tailnet has the target's host")
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c, err := p.server.dial(ctx, r.Addr)
	outside := errors.Is(err, localapi.ErrOutside)
	p.note(r, outside)
	switch {
	case outside:
		return nil, reasonOutside, err
	case err != nil:
		return nil, reasonDial, err
	}
	return c, "", nil
}

// note remembers whether the target was outside of the tailnet, and says when
// that has changed.
func (p *port) note(r Route, outside bool) {
	p.mu.Lock()
	changed := p.outside != outside && p.r.Addr == r.Addr
	if changed {
		p.outside = outside
	}
	p.mu.Unlock()
	if changed {
		p.server.changed()
	}
}

// reset closes a connection so that its client sees that it was refused.
func reset(c *net.TCPConn) {
	// What fails here has gone already.
	_ = c.SetLinger(0)
	_ = c.Close()
}
