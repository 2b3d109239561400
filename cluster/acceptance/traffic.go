// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/load"
)

// probeEvery is the interval of probes.
const probeEvery = 100 * time.Millisecond

// probeTimeout bounds one attempt, so that a host that is gone does not delay the next one.
const probeTimeout = time.Second

// A prober probes a service repeatedly. Answers are the names of hosts.
type prober struct {
	*load.Load

	mu     sync.Mutex
	probes []load.Request
}

func startProber(ctx context.Context, n *node, addr netip.AddrPort) *prober {
	p := &prober{}
	p.Load = load.Start(ctx, load.Options{
		Client: func(int) load.Client { return hostClient{n, addr} }, Interval: probeEvery, Timeout: probeTimeout,
		Observe: func(r load.Request) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.probes = append(p.probes, r)
		},
	})
	return p
}

func (p *prober) soFar() []load.Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.probes)
}

// A hostClient asks the hosts of a service for their names.
type hostClient struct {
	node *node
	addr netip.AddrPort
}

func (c hostClient) Send(ctx context.Context, _ int) (string, error) {
	words, err := c.node.answers(ctx, c.addr)
	if err != nil {
		return "", err
	}
	if len(words) == 0 {
		return "", errors.New("the answer is empty")
	}
	return words[0], nil
}

// Close does nothing: each request has its own connection.
func (hostClient) Close() {}

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
func moveIn(probes []load.Request, source string, event time.Time) move {
	var m move
	var last time.Time
	for _, p := range probes {
		if p.Err != nil {
			continue
		}
		if p.Ended.Before(event) {
			last = p.Ended
			continue
		}
		if !last.IsZero() {
			m.blackHole = max(m.blackHole, p.Ended.Sub(last))
		}
		last = p.Ended
		if p.Answer != source {
			m.to, m.delay = p.Answer, p.Ended.Sub(event)
			return m
		}
	}
	return m
}
