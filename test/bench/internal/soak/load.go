// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/gateway"
)

const (
	// quietRoutes are those that nobody changes, and quietTargets what they lead to.
	quietRoutes  = 40
	quietTargets = 8

	// clients ask one request after the other, half of them each by a connection of its
	// own.
	clients     = 4
	requestRest = 20 * time.Millisecond

	// requestLimit is longer than Envoy's own, which it answers with 504.
	requestLimit = 20 * time.Second
)

// ask Envoy for a path of a host, and return the address that answered.
func (w *World) ask(ctx context.Context, c *http.Client, host, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/%s", gateway.Listener, path), nil)
	if err != nil {
		return "", errors.Wrap(err, "cannot make request")
	}
	req.Host = host
	rsp, err := c.Do(req)
	if err != nil {
		return "", errors.Wrap(err, "cannot get")
	}
	b, err := io.ReadAll(rsp.Body)
	if err = errors.Join(err, rsp.Body.Close()); err != nil {
		return "", errors.Wrap(err, "cannot read an answer")
	}
	if rsp.StatusCode != http.StatusOK {
		return "", errors.Errorf("%s/%s: %s: %s", host, path, rsp.Status, b)
	}
	return rsp.Header.Get(gateway.AddressHeader), nil
}

// probe a route's target once.
func (w *World) probe(ctx context.Context, c *http.Client, r *route, t *target) error {
	by, err := w.ask(ctx, c, r.host(), t.name)
	if err == nil && !slices.Contains(t.answers(), by) {
		err = errors.Errorf("%s/%s is answered by %s, not by %v", r.host(), t.name, by, t.answers())
	}
	return err
}

// A load of requests to routes that nobody changes.
type load struct {
	mu sync.Mutex
	// requests that were asked, and how long the longest took.
	requests int
	longest  time.Duration
	failed   []failure
	// excused are times at which requests may fail.
	excused []span
}

// A failure of a request.
type failure struct {
	span

	err error
}

// A span of time. One without an end goes on.
type span struct{ began, ended time.Time }

func (s span) overlaps(o span) bool {
	return (o.ended.IsZero() || s.began.Before(o.ended)) && (s.ended.IsZero() || o.began.Before(s.ended))
}

// run until ctx ends.
func (l *load) run(ctx context.Context, w *World) {
	var g sync.WaitGroup
	for i := range clients {
		g.Go(func() {
			c := w.gateway.Client()
			defer c.CloseIdleConnections()
			tick := time.NewTicker(requestRest)
			defer tick.Stop()
			for n := i; ; n += clients {
				r := w.quietRoute(n % quietRoutes)
				began := time.Now()
				// What has begun is finished.
				l.note(began, w.probe(context.WithoutCancel(ctx), c, r, r.rules[0]))
				if i%2 == 0 {
					c.CloseIdleConnections()
				}
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
			}
		})
	}
	g.Wait()
}

func (l *load) note(began time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests++
	now := time.Now()
	if err != nil {
		l.failed = append(l.failed, failure{span: span{began, now}, err: err})
		return
	}
	l.longest = max(l.longest, now.Sub(began))
}

// excuse requests while something is done.
func (l *load) excuse(do func() error) error {
	l.mu.Lock()
	i := len(l.excused)
	l.excused = append(l.excused, span{began: time.Now()})
	l.mu.Unlock()
	err := do()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.excused[i].ended = time.Now()
	return err
}

// lost are the failures that nothing excuses.
func (l *load) lost() []failure {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.failed), func(f failure) bool { return slices.ContainsFunc(l.excused, f.overlaps) })
}

func (l *load) counts() (requests int, longest time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.requests, l.longest
}
