// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"net"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

var (
	// errNoHost means that a route has no address.
	errNoHost = errors.New("nobody in the tailnet has the target's host")

	// errSilent means that a target has neither accepted nor refused a dial.
	errSilent = errors.New("the target does not answer")
)

// lateAfter is how long a dial may take while no other one of the port succeeds, until the target counts
// as one that does not answer. The Dialer repeats a dial five times within 5 s, and tailscaled repeats a handshake that
// got lost after 5 s (RekeyTimeout in github.com/tailscale/wireguard-go device/constants.go).
const lateAfter = 6 * time.Second

// reportAfter is how long a target must be without an answer before Unanswered reports it. A server that
// restarts needs no report, and one that goes up and down does not cause a report each time.
const reportAfter = 10 * time.Second

// confirmAfter is how long the dial may take that confirms that a service answers nothing. Tailscaled sends only to a
// direct path for 6.5 s after its last answer (trustUDPAddrDuration in tailscale.com wgengine/magicsock/magicsock.go), and
// all of a dial that is late may have gone there. The Dialer repeats this one after 0.4 s and 1 s, and clients have
// waited for long.
const confirmAfter = 1500 * time.Millisecond

// waitLimit is how long a client may wait for an answer of a service: then the service is dialled, and if it answers no
// dial, the client is reset.
const waitLimit = 500 * time.Millisecond

// redial returns the pauses between the dials of a target that does not answer: from 0.5 s to 10 s.
func redial() wait.Backoff {
	return wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1.5, Jitter: 0.1, Steps: 8, Cap: 10 * time.Second}
}

// doubt begins to dial the target of a route after a dial that began at a certain time has failed, or is
// late. If the target does not answer, the port refuses connections until it does: clients find the
// port closed, as that of a server that is down. A connection that is accepted and reset later looks like
// a request that failed, and a check that only connects, as Envoy's, would never fail.
func (p *port) doubt(ctx context.Context, r Route, began time.Time, late bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.listeners) == 0 || p.doubting != nil || p.r.Addr != r.Addr || p.answered.After(began) {
		return
	}
	doubting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p.doubting = cancel
	p.server.wg.Go(func() {
		defer cancel()
		if !late && p.server.answers(doubting, r) {
			p.hear()
		}
		if p.closeListeners(doubting, began) {
			p.server.log.Info("Refusing connections: the target does not answer", "target", r.Target)
			report := time.AfterFunc(p.server.reportAfter, p.server.changed)
			defer report.Stop()
			p.await(ctx, doubting, r, late)
		}
	})
}

// await listens again once the target of a route answers, until doubting ends. It repeats a late dial at once, because
// that one may have been lost. Once a service is silent, or no node has its address, clients that wait for it are reset.
func (p *port) await(ctx, doubting context.Context, r Route, late bool) {
	pauses := p.server.redial
	pause, limit := time.Duration(0), p.server.confirmAfter
	if !late {
		pause, limit = pauses.Step(), p.server.lateAfter
	}
	ends := &waitsEnd{port: p, route: r}
	defer ends.stop()
	for {
		select {
		case <-doubting.Done():
			return
		case <-p.heard:
		case <-time.After(pause):
			began := time.Now()
			err := p.server.dialOnce(doubting, r, limit)
			pause, limit = pauses.Step(), p.server.lateAfter
			switch silent := errors.Is(err, errSilent) || errors.Is(err, localapi.ErrOutside); {
			case r.Service && silent:
				ends.start(doubting, began)
			case err != nil && !silent:
				// A host that refuses is alive.
				ends.stop()
			}
			if err != nil {
				continue
			}
			p.hear()
		}
		ls, err := p.server.listen(doubting, p.number)
		if err != nil {
			p.server.log.Info("Cannot listen again", "target", r.Target, "error", err)
			continue
		}
		if p.openListeners(ctx, doubting, ls) {
			p.server.log.Info("The target answers", "target", r.Target)
			p.server.changed()
		}
		return
	}
}

// closeListeners makes the port refuse connections. It returns false if doubting has ended, or if a dial has
// succeeded that ended after began.
func (p *port) closeListeners(doubting context.Context, began time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if doubting.Err() != nil {
		return false
	}
	if p.answered.After(began) {
		p.doubting = nil
		return false
	}
	select {
	case <-p.heard:
	default:
	}
	closeAll(p.listeners)
	p.cancel()
	p.listeners, p.cancel, p.silentSince = nil, nil, time.Now()
	return true
}

// openListeners makes the port accept connections again. It closes the listeners and returns false if
// doubting has ended.
func (p *port) openListeners(ctx, doubting context.Context, ls []net.Listener) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if doubting.Err() != nil {
		closeAll(ls)
		return false
	}
	p.doubting, p.silentSince = nil, time.Time{}
	p.listenAt(ctx, ls)
	return true
}

// endDoubts ends doubts about the target. The caller holds the lock.
func (p *port) endDoubts() {
	if p.doubting != nil {
		p.doubting()
	}
	p.doubting, p.silentSince = nil, time.Time{}
}

// hear records that a dial of the target succeeded.
func (p *port) hear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answered = time.Now()
	if p.silentSince.IsZero() {
		return
	}
	select {
	case p.heard <- struct{}{}:
	default:
	}
}

// silentFor returns how long the port has refused connections because its target does not answer. Zero if it
// accepts them.
func (p *port) silentFor() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silentSince.IsZero() {
		return 0
	}
	return max(time.Since(p.silentSince), 1)
}

// answers dials the target of a route once, and reports whether it answers.
func (s *Server) answers(ctx context.Context, r Route) bool {
	return s.dialOnce(ctx, r, s.lateAfter) == nil
}

// dialOnce dials the target of a route once. The error is errSilent if the target has neither accepted nor refused within a
// limit.
func (s *Server) dialOnce(ctx context.Context, r Route, limit time.Duration) error {
	if !r.Addr.IsValid() {
		return errNoHost
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case s.dialling <- struct{}{}:
	}
	defer func() { <-s.dialling }()
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c, err := s.dial(limited, r.Addr)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return errSilent
	}
	if err != nil {
		return err
	}
	// An error means that the target has closed it.
	_ = c.Close()
	return nil
}
