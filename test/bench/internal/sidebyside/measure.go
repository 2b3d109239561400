// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package sidebyside

import (
	"context"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/load"
)

const (
	// firstLimit is how long the first response may take. The operator's proxies see a change only
	// when kubelet renews their mounts, which takes up to 90 s, once for the address and once more
	// for its advertisement.
	firstLimit = 10 * time.Minute

	// bulkClients is the number of clients that look at the same time whether services answer.
	bulkClients = 8

	// rollRate is the number of requests a second while a proxy is rolled.
	rollRate = 20

	// settled is how long the traffic continues after a rolled pod is ready again: connections that
	// move back to it may be lost, too.
	settled = 10 * time.Second
)

// Ingress applies a new ingress and returns the time until the first response.
func (l *Lab) Ingress(ctx context.Context, s Side, name string) (time.Duration, error) {
	return l.first(ctx, "tailnet", s.IngressURL(name), func() error { return s.ApplyIngress(ctx, name) })
}

// IngressAll exposes the backend under many names at once, and returns how long after that all of them had
// answered.
func (l *Lab) IngressAll(ctx context.Context, s Side, names []string) (time.Duration, error) {
	began := time.Now()
	if err := s.ApplyIngress(ctx, names...); err != nil {
		return 0, err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(bulkClients)
	for _, name := range names {
		g.Go(func() error {
			_, err := l.first(gctx, "tailnet", s.IngressURL(name), func() error { return nil })
			return errors.Wrapf(err, "%s does not answer", name)
		})
	}
	err := g.Wait()
	return time.Since(began), err
}

// Egress applies a new egress and returns the time until the first response.
func (l *Lab) Egress(ctx context.Context, s Side, name string) (time.Duration, error) {
	return l.first(ctx, "cluster", s.EgressURL(name), func() error { return s.ApplyEgress(ctx, name) })
}

func (l *Lab) first(ctx context.Context, source, url string, apply func() error) (time.Duration, error) {
	// The load starts before the object is applied, so that its start does not count.
	t, err := l.start(ctx, source, url, "--first", "--new-connections", "--timeout=1s", "--for="+firstLimit.String())
	if err != nil {
		return 0, err
	}
	began := time.Now()
	applied := apply()
	if applied != nil {
		applied = errors.Join(applied, t.Stop())
	}
	r, err := t.Wait()
	return r.First.Sub(began), errors.Join(applied, err)
}

// Load sends requests to an ingress for some time at the maximum rate, on open connections.
func (l *Lab) Load(ctx context.Context, source, url string, workers int, d time.Duration) (load.Report, error) {
	t, err := l.start(ctx, source, url, "--workers="+strconv.Itoa(workers), "--for="+d.String())
	if err != nil {
		return load.Report{}, err
	}
	r, err := t.Wait()
	if err == nil && r.Answered() == 0 {
		err = errors.Errorf("%s: no response: %s", url, strings.Join(r.Errors, "; "))
	}
	return r, err
}

// Roll deletes a side's ingress pod while new connections arrive, and returns the results. It ends
// some time after the pod is ready again.
func (l *Lab) Roll(ctx context.Context, s Side, name string) (load.Report, error) {
	t, err := l.start(ctx, "tailnet", s.IngressURL(name), "--new-connections", "--workers=8", "--rate="+strconv.Itoa(rollRate), "--timeout=5s", "--for="+upLimit.String())
	if err != nil {
		return load.Report{}, err
	}
	rolled := l.roll(ctx, s)
	if rolled == nil {
		rolled = pause(ctx, settled)
	}
	stopped := t.Stop()
	r, err := t.Wait()
	return r, errors.Join(rolled, stopped, err)
}

func (l *Lab) roll(ctx context.Context, s Side) error {
	namespace, name := s.IngressPod()
	return l.rollPod(ctx, namespace, name)
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
