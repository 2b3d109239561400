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
	// quietRoutes is the number of routes that do not change, and quietTargets that of their
	// targets.
	quietRoutes  = 40
	quietTargets = 8

	// clients send one request after the other, half of them on a new connection for each request.
	clients     = 4
	requestRest = 20 * time.Millisecond

	// requestLimit is longer than Envoy's own limit, after which Envoy returns 504.
	requestLimit = 20 * time.Second
)

// request sends a request for a path of a host to Envoy, and returns the address that answered.
func (w *Environment) request(ctx context.Context, c *http.Client, host, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/%s", gateway.Listener, path), nil)
	if err != nil {
		return "", errors.Wrap(err, "cannot create request")
	}
	req.Host = host
	rsp, err := c.Do(req)
	if err != nil {
		return "", errors.Wrap(err, "cannot get")
	}
	b, err := io.ReadAll(rsp.Body)
	if err = errors.Join(err, rsp.Body.Close()); err != nil {
		return "", errors.Wrap(err, "cannot read a response")
	}
	if rsp.StatusCode != http.StatusOK {
		return "", errors.Errorf("%s/%s: %s: %s", host, path, rsp.Status, b)
	}
	return rsp.Header.Get(gateway.AddressHeader), nil
}

// probe sends one request to a route's target.
func (w *Environment) probe(ctx context.Context, c *http.Client, r *route, t *target) error {
	responder, err := w.request(ctx, c, r.host(), t.name)
	if err == nil && !slices.Contains(t.answers(), responder) {
		err = errors.Errorf("%s/%s returns %s, want one of %v", r.host(), t.name, responder, t.answers())
	}
	return err
}

// A load sends requests to routes that do not change.
type load struct {
	mu sync.Mutex
	// requests is the number of requests, and longest the time of the longest.
	requests int
	longest  time.Duration
	failed   []failure
	// excused are times in which requests may fail.
	excused []span
}

// A failure of a request.
type failure struct {
	span

	err error
}

// A span of time. A span without an end has not ended.
type span struct{ began, ended time.Time }

func (s span) overlaps(o span) bool {
	return (o.ended.IsZero() || s.began.Before(o.ended)) && (s.ended.IsZero() || o.began.Before(s.ended))
}

// run sends requests until ctx ends.
func (l *load) run(ctx context.Context, w *Environment) {
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
				// A request that has begun is completed.
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
	at := time.Now()
	if err != nil {
		l.failed = append(l.failed, failure{span: span{began, at}, err: err})
		return
	}
	l.longest = max(l.longest, at.Sub(began))
}

// excuse permits requests to fail while fn runs.
func (l *load) excuse(fn func() error) error {
	l.mu.Lock()
	i := len(l.excused)
	l.excused = append(l.excused, span{began: time.Now()})
	l.mu.Unlock()
	err := fn()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.excused[i].ended = time.Now()
	return err
}

// lost returns the failures outside of excused times.
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
