// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/netip"
	"sync"
	"time"
)

// A probe is one attempt to reach a service.
type probe struct {
	at        time.Time
	responder string // The host that answered, or empty.
}

// A prober probes a service repeatedly.
type prober struct {
	cancel context.CancelFunc
	done   chan struct{}

	mu     sync.Mutex
	probes []probe
}

// probeEvery is the interval of probes.
const probeEvery = 100 * time.Millisecond

// probeTimeout bounds one attempt, so that a host that is gone does not delay the next one.
const probeTimeout = time.Second

func startProber(ctx context.Context, n *node, addr netip.AddrPort) *prober {
	ctx, cancel := context.WithCancel(ctx)
	p := &prober{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		for pauseFor(ctx, probeEvery) == nil {
			probeCtx, stop := context.WithTimeout(ctx, probeTimeout)
			words, err := n.answers(probeCtx, addr)
			stop()
			pr := probe{at: time.Now()}
			if err == nil && len(words) > 0 {
				pr.responder = words[0]
			}
			p.mu.Lock()
			p.probes = append(p.probes, pr)
			p.mu.Unlock()
		}
	}()
	return p
}

func (p *prober) stop() {
	p.cancel()
	<-p.done
}

func (p *prober) soFar() []probe {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]probe{}, p.probes...)
}

// A move describes how traffic moved from one host to another.
type move struct {
	// to is the first other host that answered; empty if none has.
	to string

	// delay is how long after the event it answered.
	delay time.Duration

	// blackHole is the longest time between two answers, from the last one before the event until
	// then.
	blackHole time.Duration
}

// moveIn returns how traffic moved away from a host after an event.
func moveIn(probes []probe, source string, event time.Time) move {
	var m move
	var last time.Time
	for _, p := range probes {
		if p.responder == "" {
			continue
		}
		if p.at.Before(event) {
			last = p.at
			continue
		}
		if !last.IsZero() {
			m.blackHole = max(m.blackHole, p.at.Sub(last))
		}
		last = p.at
		if p.responder != source {
			m.to, m.delay = p.responder, p.at.Sub(event)
			return m
		}
	}
	return m
}
