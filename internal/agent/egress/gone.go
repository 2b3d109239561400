// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
)

// A connection is an open connection of a port.
type connection struct {
	cut context.CancelFunc

	// addr is the address of the route when the client connected.
	addr netip.AddrPort

	// target is the name of the target that the connection leads to, and presence where the netmap has
	// its node. Nil until the target was dialled.
	target   string
	presence func() localapi.Presence

	// service reports whether the target was dialled as a service of another cluster.
	service bool

	// goneSince is when the netmap was first found to have the address at no node, or at another one. Zero if
	// the node has it, or if this is not known.
	goneSince time.Time

	// movedSince is when the netmap was first found to have the address at another node. Zero if it does not.
	movedSince time.Time
}

// movedFor is how long another node must have the address of a connection until it is cut. The control server may
// move an address back at once.
const movedFor = time.Second

// CutGone cuts connections whose node has not had the address without a break, as seen by all calls
// since the first one that did not find it: soon if another node has it, later if no node does. It returns when
// to call it again if the netmap does not change, or zero. Tailscaled itself does not notice that the node is
// gone until the client sends data, see cutIdle; a client that waits for a response sends none.
func (s *Server) CutGone(at time.Time) time.Time {
	var next time.Time
	for _, p := range s.all() {
		cut, due := p.cutGone(at, s.goneFor)
		for _, target := range slices.Sorted(slices.Values(cut)) {
			s.log.Info("Ending connection to a node that no longer has the address", "target", target)
		}
		if !due.IsZero() && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	return next
}

// ForgetGone forgets since when nodes are gone. The caller does not know the netmap.
func (s *Server) ForgetGone() {
	for _, p := range s.all() {
		p.forgetGone()
	}
}

// all returns all ports.
func (s *Server) all() []*port {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*port, 0, len(s.ports))
	for _, p := range s.ports {
		out = append(out, p)
	}
	return out
}

// follow follows the node of a connection that was opened to a route. listening is the context in which the port
// listens.
func (p *port) follow(listening context.Context, client *net.TCPConn, r Route) {
	presence := p.server.follow(r.Addr.Addr())
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.conns[client]
	if c == nil {
		return
	}
	c.target, c.presence, c.service = r.Target, presence, r.Service
	if r.Service && !p.closed && p.watching == nil {
		watchWaits(listening, p)
	}
}

// cutGone cuts connections, and returns their targets, and when the next connection is due.
func (p *port) cutGone(at time.Time, absence time.Duration) (cut []string, next time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		if c.presence == nil {
			continue
		}
		presence := c.presence()
		if presence == localapi.Present {
			c.goneSince, c.movedSince = time.Time{}, time.Time{}
			continue
		}
		if c.goneSince.IsZero() {
			c.goneSince = at
		}
		due := c.goneSince.Add(absence)
		if presence != localapi.Moved {
			c.movedSince = time.Time{}
		} else {
			if c.movedSince.IsZero() {
				c.movedSince = at
			}
			if moved := c.movedSince.Add(movedFor); moved.Before(due) {
				due = moved
			}
		}
		if !at.Before(due) {
			c.cut()
			cut = append(cut, c.target)
			continue
		}
		if next.IsZero() || due.Before(next) {
			next = due
		}
	}
	return cut, next
}

func (p *port) forgetGone() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.goneSince, c.movedSince = time.Time{}, time.Time{}
	}
}
