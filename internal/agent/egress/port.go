// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// A port is a port of the pod with its listener and its connections.
type port struct {
	server *Server
	number uint16

	// heard receives a value when a dial succeeds while the target is unanswered.
	heard chan struct{}

	mu        sync.Mutex
	r         Route
	listeners []net.Listener
	cancel    context.CancelFunc
	conns     map[*net.TCPConn]*connection
	dialling  int
	outside   bool
	closed    bool

	// answered is the time of the last dial that succeeded. doubting ends the dials that find out whether the
	// target answers, if there are any. silentSince is since when the port has no listeners because it does
	// not. Zero if it has.
	answered    time.Time
	doubting    context.CancelFunc
	silentSince time.Time

	// watching ends the watch for clients that wait. Nil if there is none.
	watching context.CancelFunc
}

func newPort(s *Server, number uint16) *port {
	return &port{server: s, number: number, heard: make(chan struct{}, 1), conns: make(map[*net.TCPConn]*connection)}
}

func (p *port) route() Route {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.r
}

// set replaces the route with r. It returns the target of the previous route, and whether that one
// does not answer and the address is another one.
func (p *port) set(r Route) (old string, reopens bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	old = p.r.Target
	if p.r.Addr != r.Addr {
		reopens = !p.silentSince.IsZero()
		p.outside = false
		p.endDoubts()
	}
	p.r = r
	return old, reopens
}

// open reports whether the port has listeners, or will have them once its target answers.
func (p *port) open() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.listeners) > 0 || !p.silentSince.IsZero()
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
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listenAt(ctx, ls)
}

// listenAt accepts connections from listeners. The caller holds the lock.
func (p *port) listenAt(ctx context.Context, ls []net.Listener) {
	listening, cancel := context.WithCancel(ctx)
	p.listeners, p.cancel = ls, cancel
	context.AfterFunc(listening, func() { closeAll(ls) })
	for _, l := range ls {
		p.server.wg.Go(func() { p.accept(ctx, l) })
	}
}

func (p *port) stopListening() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endDoubts()
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
	p.closed = true
	if p.watching != nil {
		p.watching()
	}
	p.mu.Unlock()
	cutAll(p)
}

// cutAll cuts the connections of a port.
func cutAll(p *port) {
	p.mu.Lock()
	defer p.mu.Unlock()
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
		p.server.wg.Go(func() { p.serve(ctx, client) })
	}
}

// serve carries one connection, which can outlive its listener. listening is the context in which the port
// listens.
func (p *port) serve(listening context.Context, client *net.TCPConn) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(listening))
	defer cancel()
	r, ok := p.admit(client, cancel)
	if !ok {
		p.refuse(r.Target, reasonBusy)
		reset(client)
		return
	}
	defer p.release(client)

	d := dial{target: r.Target, addr: r.Addr, began: time.Now()}
	late := time.AfterFunc(p.server.lateAfter, func() { p.doubt(listening, r, d.began, true) })
	target, reason, err := p.connect(ctx, r)
	late.Stop()
	d.ended, d.reason = time.Now(), reason
	if err != nil {
		p.server.log.Debug("Refused connection", "target", r.Target, "reason", reason, "error", err)
		p.refuse(r.Target, reason)
		if reason != reasonOutside {
			p.doubt(listening, r, d.began, false)
		}
		if p.server.tracer != nil {
			p.server.record(ctx, d, firstOf(client))
		}
		reset(client)
		return
	}
	p.follow(listening, client, r)
	p.hear()
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
func (p *port) admit(client *net.TCPConn, cut context.CancelFunc) (Route, bool) {
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
	p.conns[client] = &connection{cut: cut, addr: p.r.Addr}
	return p.r, true
}

// release removes a connection that has ended.
func (p *port) release(client *net.TCPConn) {
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
		return nil, reasonNoHost, errNoHost
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
