// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"time"
)

// endWaits resets the connections of clients that wait for an answer of a service, until doubting ends: the service has
// answered no dial that began at a certain time or later. Each client finds another host, as Envoy does for a
// request that it may repeat. TCP itself would let them wait for minutes. A connection over which nobody waits
// stays, because the service may come back.
func (p *port) endWaits(doubting context.Context, r Route, began time.Time) {
	tick := time.NewTicker(p.server.waitLimit)
	defer tick.Stop()
	for {
		if n := p.cutWaiting(r, began); n > 0 {
			p.server.log.Info("Ended connections of clients that waited for an answer", "target", r.Target, "connections", n)
		}
		select {
		case <-doubting.Done():
			return
		case <-tick.C:
		}
	}
}

// cutWaiting cuts the connections of clients that wait, and returns their number.
func (p *port) cutWaiting(r Route, began time.Time) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silentSince.IsZero() {
		return 0
	}
	n := 0
	for client, c := range p.conns {
		if c.addr != r.Addr {
			continue
		}
		// Before the target was dialled, the client waits for that.
		if c.presence != nil {
			if s, err := silenceOf(client); err != nil || !s.waits(p.server.waitLimit, time.Since(began)) {
				continue
			}
		}
		c.cut()
		n++
	}
	return n
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

// waits reports whether a client has spoken last, at least limit ago, and has received nothing for the duration d. A client
// whose request and answer are within the unit of the clock counts as one that waits.
func (s silence) waits(limit, d time.Duration) bool {
	return s.requested && s.client >= limit && s.client <= s.target && s.target+clockUnit >= d
}
