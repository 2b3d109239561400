// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// watchWaits dials the service of a port while a client waits for an answer to a request that it has sent since the last
// dial that the service has accepted. Clients that keep their connections open cause no other dials. A request causes one
// dial at most, and the watch ends with the last connection. The caller holds the lock.
func watchWaits(listening context.Context, p *port) {
	watching, cancel := context.WithCancel(context.WithoutCancel(listening))
	p.watching = cancel
	p.server.wg.Go(func() {
		defer cancel()
		tick := time.NewTicker(p.server.waitLimit)
		defer tick.Stop()
		for {
			select {
			case <-watching.Done():
				return
			case <-tick.C:
			}
			if n := cutLeft(p); n > 0 {
				p.server.log.Info("Ended connections of clients that waited for a node that no longer has the address", "connections", n)
			}
			began := time.Now()
			r, waits, connected := unproven(p, began)
			if !connected {
				return
			}
			if !waits {
				continue
			}
			err := p.server.dialOnce(watching, r, p.server.lateAfter)
			switch {
			case err == nil:
				p.hear()
			case !errors.Is(err, localapi.ErrOutside):
				p.doubt(listening, r, began, errors.Is(err, errSilent))
			}
		}
	})
}

// cutLeft cuts the connections of clients that wait for a service while no node has the address that the connection leads to,
// or another one has it, and returns their number. Control knows that a host is gone before a dial of it is late. The
// service must have been silent for as long, because control may lose a host that still answers.
func cutLeft(p *port) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for client, c := range p.conns {
		if !c.service || c.presence() == localapi.Present {
			continue
		}
		s, err := silenceOf(client)
		if err == nil && s.waits(p.server.waitLimit) && s.target+clockUnit >= p.server.lateAfter {
			c.cut()
			n++
		}
	}
	return n
}

// unproven returns the route of a port, and reports whether a client waits for an answer of a service that has accepted no
// dial since the client's request, while nothing else finds out whether it answers. It ends the watch if no connection is
// open.
func unproven(p *port, at time.Time) (r Route, waits, connected bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.conns) == 0 || !p.r.Service {
		p.watching = nil
		return p.r, false, false
	}
	if p.doubting != nil {
		return p.r, false, true
	}
	for client, c := range p.conns {
		if c.addr != p.r.Addr || c.presence == nil {
			continue
		}
		s, err := silenceOf(client)
		if err == nil && s.waits(p.server.waitLimit) && p.answered.Before(at.Add(clockUnit-s.client)) {
			return p.r, true, true
		}
	}
	return p.r, false, true
}

// endWaits resets the connections of a port whose clients wait for an answer of a service, until doubting ends. A dial
// that began at a certain time was neither accepted nor refused. A client may then find another host, as Envoy does for
// a request that it may repeat. TCP itself would let it wait for minutes. A connection over which the service has
// spoken last stays, because the service may come back.
func endWaits(doubting context.Context, p *port, r Route, began time.Time) {
	tick := time.NewTicker(p.server.waitLimit)
	defer tick.Stop()
	for {
		if n := p.cutWaiting(doubting, r, began); n > 0 {
			p.server.log.Info("Ended connections of clients that waited for an answer", "target", r.Target, "connections", n)
		}
		select {
		case <-doubting.Done():
			return
		case <-tick.C:
		}
	}
}

// cutWaiting cuts the connections of clients that wait, and returns their number. It cuts none if the service has accepted
// a dial since began, or has sent something over one of them recently.
func (p *port) cutWaiting(doubting context.Context, r Route, began time.Time) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if doubting.Err() != nil || p.answered.After(began) {
		return 0
	}
	var waiting []*connection
	for client, c := range p.conns {
		if c.addr != r.Addr {
			continue
		}
		// A client whose target was not dialled yet waits for that.
		if c.presence != nil {
			s, err := silenceOf(client)
			if err != nil {
				continue // The connection was closed.
			}
			if s.target+clockUnit < p.server.lateAfter {
				return 0
			}
			if !s.waits(p.server.waitLimit) {
				continue
			}
		}
		waiting = append(waiting, c)
	}
	for _, c := range waiting {
		c.cut()
	}
	return len(waiting)
}

// A silence is for how long each side of a client's connection has sent no data.
type silence struct {
	client, target time.Duration

	// requested reports whether the client has sent any.
	requested bool
}

// clockUnit is the largest unit of the kernel's clock for data that was sent: times of both sides that are equal may
// differ by it, in either direction (Linux, include/uapi/asm-generic/param.h and net/ipv4/tcp.c, tcp_get_info).
const clockUnit = 10 * time.Millisecond

// waits reports whether a client has spoken last, at least limit ago. A client whose request and answer are within the unit
// of the clock counts as one that waits.
func (s silence) waits(limit time.Duration) bool {
	return s.requested && s.client >= limit && s.client <= s.target
}
