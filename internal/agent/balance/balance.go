// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package balance chooses one of several backends for each connection or request of a port: by
// health, priority, weight, and open connections. It uses no clock and no I/O, and the same calls
// give the same choices. Package plan configures it, and package terminate connects.
package balance

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/internal/backendtls"
	"github.com/tailscale-gateway/tailscale-gateway/internal/probe"
)

// avoidance is how long others are preferred to a backend to which a connection has failed. Probes
// find out within about this time whether it is unhealthy.
const avoidance = 5 * time.Second

// A Backend is one of several backends of a port.
type Backend struct {
	// Address is a host and a port.
	Address string `json:"address"`

	// TLS are the settings of connections to the backend.
	TLS backendtls.Settings `json:"tls,omitzero"`

	// Weight among the backends of the same priority. It is positive.
	Weight int `json:"weight"`

	// Priority of the backend: the lowest one with a usable backend receives everything.
	Priority int `json:"priority,omitempty"`

	// FailbackDelay is how long the backend must be healthy again before it receives anything, while
	// another one is healthy.
	FailbackDelay time.Duration `json:"failbackDelay,omitempty"`

	// Health is the last known health. A restarted agent probes again.
	Health probe.Health `json:"-"`
}

// A Config is the backends of a port, and how to choose one.
type Config struct {
	Backends []Backend `json:"backends"`

	// LeastConnections chooses the backend with the fewest open connections for its weight. Otherwise
	// each receives a share by its weight.
	LeastConnections bool `json:"leastConnections,omitempty"`
}

// Equal reports whether both are the same, regardless of health.
func (c Config) Equal(o Config) bool {
	return c.LeastConnections == o.LeastConnections && slices.EqualFunc(c.Backends, o.Backends, func(a, b Backend) bool {
		a.Health = b.Health
		return a == b
	})
}

// A Picker chooses backends. Its methods are safe for concurrent use. The zero value has no backends.
type Picker struct {
	mu               sync.Mutex
	leastConnections bool
	members          []*member

	// picks is the number of picks.
	picks uint64
}

// A member is a backend and its use.
type member struct {
	Backend

	// open is the number of open connections or requests.
	open int

	// picked is the number of the last pick of the backend, or 0.
	picked uint64

	// current is the share that the backend is owed, in smooth weighted round robin.
	current int

	// failed reports that the backend was unhealthy, and not healthy since.
	failed bool

	// notBefore is until when other healthy backends are preferred.
	notBefore time.Time
}

// Set replaces the backends. Those that stay, by their addresses, keep their open connections, and
// their shares as long as the weights and priorities of all are the same: what a backend is owed by other
// weights would decide for as many connections as the sum of these.
func (p *Picker) Set(c Config, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	previous := p.members
	p.leastConnections, p.members = c.LeastConnections, make([]*member, 0, len(c.Backends))
	reweighted := false
	for _, b := range c.Backends {
		m := &member{}
		if i := slices.IndexFunc(previous, func(o *member) bool { return o.Address == b.Address }); i >= 0 {
			m, previous = previous[i], slices.Delete(slices.Clone(previous), i, i+1)
			reweighted = reweighted || m.Weight != b.Weight || m.Priority != b.Priority
		}
		m.Backend = b
		switch b.Health {
		case probe.Unhealthy:
			m.failed = true
		case probe.Healthy:
			if m.failed {
				m.failed, m.notBefore = false, at.Add(b.FailbackDelay)
			}
		case probe.Unknown:
		}
		p.members = append(p.members, m)
	}
	if reweighted {
		for _, m := range p.members {
			m.current = 0
		}
	}
}

// Open returns the number of open connections or requests, by address. Tests of the packages that balance
// use it.
func (p *Picker) Open() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make(map[string]int, len(p.members))
	for _, m := range p.members {
		out[m.Address] += m.open
	}
	return out
}

// Uses reports whether a backend has settings of TLS.
func (p *Picker) Uses(s backendtls.Settings) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.members, func(m *member) bool { return m.TLS == s })
}

// Choose begins the choice of a backend for one connection or request. Its Done must be called at the
// end of the connection or request.
func (p *Picker) Choose() *Choice { return &Choice{p: p} }

// A Choice is the backends that one connection or request tries, one after the other. Its methods are
// not safe for concurrent use.
type Choice struct {
	p      *Picker
	tried  []*member
	chosen *member
}

// Next returns the first backend to try, and after that, the next one: a second call means that there
// is no connection to the one before. It returns false once all have been tried.
func (c *Choice) Next(at time.Time) (Backend, bool) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	if c.chosen != nil {
		c.chosen.open--
		c.chosen.notBefore = later(c.chosen.notBefore, at.Add(avoidance))
		c.chosen = nil
	}
	m := c.p.pick(at, c.tried)
	if m == nil {
		return Backend{}, false
	}
	m.open++
	c.chosen, c.tried = m, append(c.tried, m)
	return m.Backend, true
}

// Done ends the use of the chosen backend. It may be called again.
func (c *Choice) Done() {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	if c.chosen != nil {
		c.chosen.open--
		c.chosen = nil
	}
}

// Classes of backends, from the best to the worst.
const (
	classUsable = iota
	classAvoided
	classUnknown
	classUnhealthy
)

// class returns the class of a backend. Priorities count within a class.
func (m *member) class(at time.Time) int {
	switch {
	case m.Health == probe.Unhealthy:
		return classUnhealthy
	case m.Health == probe.Unknown:
		return classUnknown
	case at.Before(m.notBefore):
		return classAvoided
	}
	return classUsable
}

// pick returns the backend that receives the next connection, or nil if all have been tried. The
// caller holds the lock.
func (p *Picker) pick(at time.Time, tried []*member) *member {
	var best []*member
	for _, m := range p.members {
		if slices.Contains(tried, m) {
			continue
		}
		if len(best) > 0 {
			order := cmp.Or(cmp.Compare(m.class(at), best[0].class(at)), cmp.Compare(m.Priority, best[0].Priority))
			if order > 0 {
				continue
			}
			if order < 0 {
				best = best[:0]
			}
		}
		best = append(best, m)
	}
	m := p.next(best)
	if m != nil {
		p.picks++
		m.picked = p.picks
	}
	return m
}

// next returns one of the best backends. The caller holds the lock.
func (p *Picker) next(best []*member) *member {
	if p.leastConnections {
		return idlest(best)
	}
	return turn(best)
}

// idlest returns the backend with the fewest open connections for its weight, counting the next
// connection, or of several, the one that was picked longest ago.
func idlest(members []*member) *member {
	if len(members) == 0 {
		return nil
	}
	return slices.MinFunc(members, func(a, b *member) int {
		return cmp.Or(cmp.Compare((a.open+1)*b.Weight, (b.open+1)*a.Weight), cmp.Compare(a.picked, b.picked))
	})
}

// turn returns the backend whose turn it is by smooth weighted round robin, as in nginx
// (src/http/ngx_http_upstream_round_robin.c): each is owed its weight more, and the one that is owed
// most, the first of equals, pays the sum. Its turns are spread over the sequence.
func turn(members []*member) *member {
	var next *member
	total := 0
	for _, m := range members {
		m.current += m.Weight
		total += m.Weight
		if next == nil || m.current > next.current {
			next = m
		}
	}
	if next != nil {
		next.current -= total
	}
	return next
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
