// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/gateway"
	"github.com/tailscale-gateway/tailscale-gateway/test/load"
)

const (
	// marker is a route, and beat a target. Each changes again as soon as Envoy has the last
	// change.
	marker = "marker"
	beat   = "beat"

	// The address of beat is one of these in turn.
	firstBeat = 241
	beats     = 10

	// calm is the key of times without an outage.
	calm = "calm"

	markerRest = 500 * time.Millisecond

	// markerLimit is the time after which a change counts as lost: longer than any outage with its
	// recovery.
	markerLimit = 5 * time.Minute
)

// markers are changes, each with the time from its write until Envoy served it.
type markers struct {
	mu  sync.Mutex
	all []load.Span
}

// since returns the number of changes that were written and served after a time.
func (m *markers) since(at time.Time) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, s := range m.all {
		if s.Began.After(at) {
			n++
		}
	}
	return n
}

// run makes one change after the other until ctx ends.
func (m *markers) run(ctx context.Context, change func(ctx context.Context, n int) error, served func(ctx context.Context, n int) error) error {
	tick := time.NewTicker(markerRest)
	defer tick.Stop()
	for n := 0; ; n++ {
		if err := change(ctx, n); err != nil {
			return ended(ctx, err)
		}
		began := time.Now()
		limited, cancel := context.WithTimeout(ctx, markerLimit)
		err := until(limited, func(ctx context.Context) error { return served(ctx, n) })
		cancel()
		if err != nil {
			return ended(ctx, errors.Wrapf(err, "a change is not served after %s", time.Since(began)))
		}
		m.mu.Lock()
		m.all = append(m.all, load.Span{Began: began, Ended: time.Now()})
		m.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// ended drops an error that the end of ctx caused.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // The end of ctx caused it.
	}
	return err
}

// markRoutes changes the marker's path.
func (w *Environment) markRoutes(ctx context.Context, m *markers) error {
	c := w.gateway.Client()
	defer c.CloseIdleConnections()
	path := func(n int) string { return fmt.Sprintf("m%d", n) }
	backend := w.quiet[0]
	return m.run(ctx, func(ctx context.Context, n int) error {
		r := (&route{name: marker}).object()
		r.Spec.Rules = append(r.Spec.Rules, rule("/"+path(n), backend.name))
		return w.put(ctx, r)
	}, func(ctx context.Context, n int) error {
		return w.get(ctx, c, gateway.Target((&route{name: marker}).host(), path(n), func(string) error { return nil }))
	})
}

// markEndpoints changes the beat's endpoint.
func (w *Environment) markEndpoints(ctx context.Context, m *markers) error {
	c := w.gateway.Client()
	defer c.CloseIdleConnections()
	t := &target{name: beat}
	r := &route{name: beat, rules: []*target{t}}
	return m.run(ctx, func(ctx context.Context, n int) error {
		t.addresses = []string{fmt.Sprintf("192.0.2.%d", firstBeat+n%beats)}
		if n > 0 {
			return w.put(ctx, gateway.Slice(t.name, t.addresses...))
		}
		return w.put(ctx, append(t.objects(), r.object())...)
	}, func(ctx context.Context, _ int) error { return w.probe(ctx, c, r, t) })
}

// late returns the maximum time from the write of a change until it was served, without the outages
// within that time. Its keys are the names of the last of these outages, or calm.
func (m *markers) late(outages []outage) map[string]time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]time.Duration{}
	for _, s := range m.all {
		start, name := s.Began, calm
		for _, o := range outages {
			if !s.Overlaps(o.Span) {
				continue
			}
			name = o.name
			if !o.Ended.After(s.Ended) && o.Ended.After(start) {
				start = o.Ended
			}
		}
		out[name] = max(out[name], s.Ended.Sub(start))
	}
	return out
}
