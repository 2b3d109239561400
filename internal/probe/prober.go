// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"maps"
	"net/netip"
	"sync"
	"time"
)

// A Prober probes a changing set of targets. Its methods are safe for concurrent use.
type Prober struct {
	checker Checker
	changed func()
	probed  func(ok bool)

	mu      sync.Mutex
	targets map[Target]*probing
}

// A probing holds the goroutine of a target and the target's status.
type probing struct {
	cancel context.CancelFunc
	status Status
}

// A ProberOption configures a Prober.
type ProberOption func(*Prober)

// WithProbed makes the Prober call fn after every probe.
func WithProbed(fn func(ok bool)) ProberOption {
	return func(p *Prober) { p.probed = fn }
}

// NewProber returns a Prober without targets. It calls changed from separate goroutines after a
// target's status has changed.
func NewProber(c Checker, changed func(), o ...ProberOption) *Prober {
	p := &Prober{
		checker: c,
		changed: changed,
		probed:  func(bool) {},
		targets: make(map[Target]*probing),
	}
	for _, fn := range o {
		fn(p)
	}
	return p
}

// Set replaces the targets. Targets that stay keep their status, and new ones are probed at
// once, until ctx is done.
func (p *Prober) Set(ctx context.Context, targets []Target) {
	p.mu.Lock()
	defer p.mu.Unlock()

	wanted := make(map[Target]bool, len(targets))
	for _, t := range targets {
		wanted[t] = true
	}
	maps.DeleteFunc(p.targets, func(t Target, pr *probing) bool {
		if wanted[t] {
			return false
		}
		pr.cancel()
		return true
	})
	for t := range wanted {
		if p.targets[t] != nil {
			continue
		}
		pctx, cancel := context.WithCancel(ctx)
		pr := &probing{cancel: cancel}
		p.targets[t] = pr
		go p.probe(pctx, t, pr)
	}
}

// Statuses returns the status of each target.
func (p *Prober) Statuses() map[Target]Status {
	p.mu.Lock()
	defer p.mu.Unlock()

	out := make(map[Target]Status, len(p.targets))
	for t, pr := range p.targets {
		out[t] = pr.status
	}
	return out
}

// probe probes one target until ctx ends.
func (p *Prober) probe(ctx context.Context, t Target, pr *probing) {
	var r state
	for {
		at, err := p.check(ctx, t)
		if ctx.Err() != nil {
			return
		}
		p.probed(err == nil)

		var pause time.Duration
		r, pause = r.next(t, at, Reason(err))
		p.mu.Lock()
		changed := pr.status != r.status
		pr.status = r.status
		p.mu.Unlock()
		if changed {
			p.changed()
		}

		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

func (p *Prober) check(ctx context.Context, t Target) (netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	return p.checker.Check(ctx, t)
}
