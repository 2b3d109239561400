// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// leftFor is how long no node must have had the address of a connection without a break, or another one, until a client that
// waits is reset. Control withdraws an address for a moment when a host serves it again.
const leftFor = 3 * time.Second

// watchWaits dials the service of a port while a client waits for an answer to a request that it has sent since the last
// dial that the service has accepted. Clients that keep their connections open cause no other dials. A service that is slow to
// answer is dialled once for a request. The watch ends with the last connection. The caller holds the lock.
func watchWaits(listening context.Context, p *port) {
	watching, cancel := context.WithCancel(context.WithoutCancel(listening))
	p.watching = cancel
	p.server.wg.Go(func() {
		defer cancel()
		tick := time.NewTicker(p.server.waitLimit)
		defer tick.Stop()
		pauses, rest := p.server.redial, time.Time{}
		for {
			select {
			case <-watching.Done():
				return
			case <-tick.C:
			}
			began := time.Now()
			if n := cutLeft(p, began); n > 0 {
				p.server.log.Info("Ended connections of clients that waited for a node that no longer has the address", "connections", n)
			}
			r, waits, connected := unproven(p, began)
			switch {
			case !connected:
				return
			case !waits || began.Before(rest):
				continue
			}
			if err := ask(watching, listening, p, r, began); err != nil {
				rest = time.Now().Add(pauses.Step())
				continue
			}
			pauses, rest = p.server.redial, time.Time{}
		}
	})
}

// ask dials the service of a route for a client that waits. If it accepts no dial, the port doubts that it answers. A port
// that only ends has no listeners, and no doubts: its clients are reset here, once a second dial has confirmed it.
func ask(watching, listening context.Context, p *port, r Route, began time.Time) error {
	err := p.server.dialOnce(watching, r, p.server.lateAfter)
	if err == nil {
		p.hear()
		return nil
	}
	if errors.Is(err, localapi.ErrOutside) {
		return err
	}
	silent := errors.Is(err, errSilent)
	p.doubt(listening, r, began, silent)
	if silent && !p.open() && errors.Is(p.server.dialOnce(watching, r, p.server.confirmAfter), errSilent) {
		p.cutWaiting(watching, r, began)
	}
	return err
}

// cutLeft cuts the connections of clients that wait for a service although no node has the address that the connection leads
// to, or another one has it, and returns their number. Control knows that a host is gone before a dial of it is late. The
// service must have been silent for as long, because control may lose a host that still answers.
func cutLeft(p *port, at time.Time) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for client, c := range p.conns {
		if !c.service || c.goneSince.IsZero() || at.Sub(c.goneSince) < leftFor || c.presence() == localapi.Present {
			continue
		}
		s, err := silenceOf(client)
		if err == nil && s.waits(p.server.waitLimit) && s.lasts(p.server.lateAfter) {
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

// A waitsEnd ends the waits of clients while the service of a route is silent.
type waitsEnd struct {
	port   *port
	route  Route
	cancel context.CancelFunc
}

// start begins to end waits, unless it has begun. A dial that began at a certain time was neither accepted nor refused.
func (e *waitsEnd) start(doubting context.Context, began time.Time) {
	if e.cancel != nil {
		return
	}
	ending, cancel := context.WithCancel(doubting)
	e.cancel = cancel
	e.port.server.wg.Go(func() { endWaits(ending, e.port, e.route, began) })
}

// stop leaves clients waiting.
func (e *waitsEnd) stop() {
	if e.cancel == nil {
		return
	}
	e.cancel()
	e.cancel = nil
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
			if !s.lasts(p.server.lateAfter) {
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

// lasts reports whether the target has sent nothing for at least limit.
func (s silence) lasts(limit time.Duration) bool { return s.target+clockUnit >= limit }

// waits reports whether a client has spoken last, at least limit ago. A client whose request and answer are within the unit
// of the clock counts as one that waits.
func (s silence) waits(limit time.Duration) bool {
	return s.requested && s.client >= limit && s.client <= s.target
}
