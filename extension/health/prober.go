// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/limits"
)

const (
	// spread is the time over which the first probes of endpoints are spread.
	spread = 2 * time.Second

	// jitter is the part of an interval by which probes vary.
	jitter = 0.1

	// unsettled is the time until the next probe while the status is about to change.
	unsettled = time.Second

	// settle is the time that the prober waits for further changes of the snapshot.
	settle = 200 * time.Millisecond
)

// A Store provides targets, and stores their placements. index.Store implements it.
type Store interface {
	Snapshot() *ir.Snapshot
	SetHealth(placements map[ir.TargetKey]ir.Placement)
}

// Options of a Prober.
type Options struct {
	// Checker probes. Nil means NetChecker{}.
	Checker Checker

	// Random returns a number from 0 up to 1. Nil means a random number.
	Random func() float64

	// Transition is called with the targets that have endpoints with another status, have other
	// endpoints, or are gone. It must not block. May be nil.
	Transition func(targets []ir.TargetKey)

	// Log may be nil.
	Log logging.Logger
}

// A Prober probes the endpoints of all targets, and stores the results. The goroutine of Run makes
// all decisions; each probe has another goroutine.
type Prober struct {
	store   Store
	opts    Options
	metrics *Metrics

	changed chan struct{}
	done    chan outcome

	// mu guards the fields below for readers. Only Run writes them.
	mu      sync.Mutex
	checks  map[Check]*endpoint
	due     *schedule
	targets map[ir.TargetKey]*target

	// probed counts the checks of each namespace, and short are the targets with endpoints that are not
	// probed because their namespace has too many.
	probed map[string]int
	short  map[ir.TargetKey]*target

	// waiting are the targets that are due at a certain time without an event.
	waiting map[ir.TargetKey]*target

	// answered is the time of the last answer of any host, and lastHost is that host; other is the time
	// of the last answer of any other host.
	answered, other time.Time
	lastHost        string
}

// An endpoint is one check with its results.
type endpoint struct {
	check Check
	facts Facts
	State

	// targets are those that have it. Keys would need several times the memory.
	targets map[*target]struct{}

	// next is the time of the next probe, and index the endpoint's index in the queue; -1 while a
	// probe runs, or after the endpoint is removed.
	next    time.Time
	index   int
	removed bool

	// last is the time of the last probe, and failing the time of the first of its failures in a
	// row. Zero if there is none.
	last, failing time.Time
}

// An outcome of a probe.
type outcome struct {
	endpoint *endpoint
	result   Result
}

// NewProber returns a prober that Run starts.
func NewProber(s Store, o Options) *Prober {
	if o.Checker == nil {
		o.Checker = NetChecker{}
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	if o.Transition == nil {
		o.Transition = func([]ir.TargetKey) {}
	}
	if o.Log == nil {
		o.Log = logging.NewNopLogger()
	}
	p := &Prober{
		store:   s,
		opts:    o,
		changed: make(chan struct{}, 1),
		done:    make(chan outcome),
		checks:  map[Check]*endpoint{},
		due:     newSchedule(limits.ProbeSlots),
		targets: map[ir.TargetKey]*target{},
		waiting: map[ir.TargetKey]*target{},
		probed:  map[string]int{},
		short:   map[ir.TargetKey]*target{},
	}
	p.metrics = newMetrics(p)
	return p
}

// Metrics returns the collector of the prober.
func (p *Prober) Metrics() *Metrics { return p.metrics }

// Changed announces a new snapshot. It never blocks.
func (p *Prober) Changed() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// Run probes until ctx ends.
func (p *Prober) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var probes sync.WaitGroup
	defer probes.Wait()
	defer cancel()
	p.sync(time.Now())
	timer := time.NewTimer(0)
	defer timer.Stop()
	var stale <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.changed:
			if stale == nil {
				stale = time.After(settle)
			}
		case <-stale:
			stale = nil
			p.sync(time.Now())
		case o := <-p.done:
			p.finish(time.Now(), o)
		case <-timer.C:
		}
		for e := p.start(time.Now()); e != nil; e = p.start(time.Now()) {
			probes.Go(func() { p.probe(ctx, e) })
		}
		timer.Reset(p.wait(time.Now()))
	}
}

// probe probes an endpoint once.
func (p *Prober) probe(ctx context.Context, e *endpoint) {
	cctx, cancel := context.WithTimeout(ctx, e.check.Timeout)
	defer cancel()
	r := p.opts.Checker.Check(cctx, e.check)
	select {
	case p.done <- outcome{endpoint: e, result: r}:
	case <-ctx.Done():
	}
}

// start returns an endpoint whose probe is due, and whose namespace may begin another probe. Nil if
// there is none.
func (p *Prober) start(at time.Time) *endpoint {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.due.start(at)
}

// wait returns the time until something is due.
func (p *Prober) wait(at time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := p.due.next(at.Add(time.Hour))
	var due []ir.TargetKey
	for k, t := range p.waiting {
		switch {
		case !t.recheck.After(at):
			due = append(due, k)
		case t.recheck.Before(next):
			next = t.recheck
		}
	}
	if len(due) > 0 {
		p.place(at, due)
		return 0
	}
	return max(next.Sub(at), 0)
}
