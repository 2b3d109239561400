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

// A port is a port of the pod with its listener and its connections.
type port struct {
	server *Server

	mu        sync.Mutex
	r         Route
	listeners []net.Listener
	cancel    context.CancelFunc
	conns     map[net.Conn]*connection
	dialling  int
	outside   bool
	closed    bool
}

func newPort(s *Server) *port {
	return &port{server: s, conns: make(map[net.Conn]*connection)}
}

func (p *port) route() Route {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.r
}

// set replaces the route with r, and returns the target of the previous route.
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
	return len(p.listeners) > 0
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

// start accepts connections from listeners.
func (p *port) start(ctx context.Context, ls []net.Listener) {
	ctx, cancel := context.WithCancel(ctx)
	p.mu.Lock()
	p.listeners, p.cancel = ls, cancel
	p.mu.Unlock()
	context.AfterFunc(ctx, func() { closeAll(ls) })
	for _, l := range ls {
		p.server.wg.Go(func() { p.accept(ctx, l) })
	}
}

func (p *port) stopListening() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.listeners) == 0 {
		return
	}
	closeAll(p.listeners)
	p.cancel()
	p.listeners, p.cancel = nil, nil
}

// close stops listening and cuts all connections.
func (p *port) close() {
	p.stopListening()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.conns {
		c.cut()
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
			// A TCP listener accepts only TCP connections.
			_ = c.Close()
			continue
		}
		p.server.wg.Go(func() { p.serve(context.WithoutCancel(ctx), client) })
	}
}

// serve carries one connection, which can outlive its listener.
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

	d := dial{target: r.Target, addr: r.Addr, began: time.Now()}
	target, reason, err := p.connect(ctx, r)
	d.ended, d.reason = time.Now(), reason
	if err != nil {
		p.server.log.Debug("Refused connection", "target", r.Target, "reason", reason, "error", err)
		p.refuse(r.Target, reason)
		if p.server.tracer != nil {
			p.server.record(ctx, d, firstOf(client))
		}
		reset(client)
		return
	}
	p.follow(client, r)
	counted, tracked := p.opened(r.Target)
	if p.server.idle > 0 {
		go cutIdle(ctx, func() (transferred, error) { return transfer(client) }, p.server.idle, cancel)
	}
	var first func([]byte)
	if p.server.tracer != nil {
		first = func(data []byte) { p.server.record(ctx, d, data) }
	}
	up, down := carry(ctx, client, target, first)
	if tracked {
		counted.closed(up, down)
	}
}

// opened counts a connection, unless the port no longer leads to the target: the target's
// metrics are then already forgotten, or are about to be.
func (p *port) opened(target string) (carried, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.leadsTo(target) {
		return carried{}, false
	}
	return p.server.metrics.open(target), true
}

// refuse counts a refused connection under the same condition as opened.
func (p *port) refuse(target, reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.leadsTo(target) {
		p.server.metrics.refuse(target, reason)
	}
}

// leadsTo reports whether the port still leads to a target. The caller holds the lock.
func (p *port) leadsTo(target string) bool { return !p.closed && p.r.Target == target }

// admit records a connection. It returns false when too many connections wait to be dialled, or
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
	p.conns[client] = &connection{cut: cut}
	return p.r, true
}

// release removes a connection that has ended.
func (p *port) release(client net.Conn) {
	p.mu.Lock()
	delete(p.conns, client)
	drained := len(p.conns) == 0 && p.r.Phase != Serving
	p.mu.Unlock()
	if drained {
		p.server.changed()
	}
}

// connect dials the target. On failure it also returns the reason, as used in metrics.
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

// note records whether the target was outside of the tailnet, and calls changed when this
// differs from the last result.
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

// reset closes a connection with a TCP reset, so that its client sees that it was refused.
func reset(c *net.TCPConn) {
	// An error means that the connection is already closed.
	_ = c.SetLinger(0)
	_ = c.Close()
}
