// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// Options of a soak.
type Options struct {
	// Program is the extension's, and Logs the folder for the output of all processes.
	Program, Logs string
	// Duration of the churn.
	Duration time.Duration
	// Routes that change.
	Routes int
	// Edits per second.
	Edits float64
	// Seed of random choices.
	Seed uint64
	// Say prints progress.
	Say func(format string, args ...any)
}

// A Report holds the results of a soak.
type Report struct {
	// Edits by kind, and Outages by name.
	Edits, Outages map[string]int
	// Requests to routes that did not change, the Lost ones among them, and the time of the
	// Longest.
	Requests, Lost int
	Longest        time.Duration
	// RoutesLate and EndpointsLate are the maximum times until a change was served, without
	// outages, by the outage.
	RoutesLate, EndpointsLate map[string]time.Duration
	// EnvoyRecovered is the maximum time until a restarted Envoy answered for all quiet routes.
	EnvoyRecovered time.Duration
	// Trends over the second half, by the sampled value.
	Trends map[string]Trend
	// Wrong is the number of rules that their target does not answer at the end.
	Wrong int
	// Different is the number of Envoy's resources that differ at the end from those after a fresh
	// start of all processes.
	Different int
}

// Run runs a soak.
func Run(ctx context.Context, o Options) (*Report, error) {
	w, err := start(ctx, o)
	if err != nil {
		return nil, err
	}
	r, err := w.soak(ctx, o)
	return r, errors.Join(err, w.stop())
}

// soak runs for the duration and checks the final state, with connections directed to ready
// replicas.
func (w *Environment) soak(ctx context.Context, o Options) (*Report, error) {
	r := &Report{Outages: map[string]int{}, Trends: map[string]Trend{}}
	ctx, stop := context.WithCancel(ctx)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return (&leader{Environment: w}).run(ctx) })
	g.Go(func() error {
		defer stop()
		if err := w.answers(ctx); err != nil {
			return err
		}
		o.Say("all quiet routes answer")
		if err := w.fill(ctx, r, o); err != nil {
			return err
		}
		return w.compare(ctx, r, o.Say)
	})
	return r, g.Wait()
}

// fill fills the report during the run.
func (w *Environment) fill(ctx context.Context, r *Report, o Options) error {
	began := time.Now()
	// The resident memory of a process grows for minutes after its start, until the heap has reached
	// its peaks: growth is measured over the second half, of processes that started in the first
	// third.
	warm, half := began.Add(o.Duration/3), began.Add(o.Duration/2)
	// Markers and traffic run until chaos has seen the last change served.
	marking, end := context.WithCancel(ctx)
	defer end()
	l, routes, endpoints := w.startTraffic(marking), &markers{}, &markers{}
	c := &chaos{
		Environment: w, load: l, routes: routes, endpoints: endpoints, say: o.Say,
		outage: min(time.Minute, o.Duration/12), down: min(10*time.Second, o.Duration/60), calm: min(time.Minute, o.Duration/60),
	}
	marked, marking := errgroup.WithContext(marking)
	marked.Go(func() error { return w.markRoutes(marking, routes) })
	marked.Go(func() error { return w.markEndpoints(marking, endpoints) })

	timed, cancel := context.WithDeadline(marking, began.Add(o.Duration))
	defer cancel()
	var samples []sample
	g, timed := errgroup.WithContext(timed)
	g.Go(func() (err error) {
		r.Edits, err = w.churn(timed, time.Duration(float64(time.Second)/o.Edits))
		return err
	})
	g.Go(func() error { return c.run(timed, warm) })
	g.Go(func() error { samples = w.watch(timed, o, l); return nil })
	err := g.Wait()
	end()
	l.Wait()
	if err := errors.Join(marked.Wait(), err, context.Cause(ctx)); err != nil {
		return err
	}
	w.judge(r, l, c, o.Say)
	for _, metric := range []string{RSS, Heap, Goroutines, Files, Streams, EnvoyMemory, EnvoyClusters} {
		if r.Trends[metric], err = trend(samples, metric, half, o.Duration); err != nil {
			return err
		}
	}
	return nil
}

// judge fills the report from the observations of the run.
func (w *Environment) judge(r *Report, l *traffic, c *chaos, say func(string, ...any)) {
	for _, o := range c.outages {
		r.Outages[o.name]++
	}
	r.Requests, r.Longest = l.Requests(), l.Longest()
	lost := l.lost()
	r.Lost = len(lost)
	for _, f := range lost[:min(len(lost), 10)] {
		say("lost: %s", f)
	}
	r.RoutesLate, r.EndpointsLate = c.routes.late(c.outages), c.endpoints.late(c.outages)
	r.EnvoyRecovered = c.recovered
}

// compare compares the final state with the desired one.
func (w *Environment) compare(ctx context.Context, r *Report, say func(string, ...any)) error {
	say("comparing with a fresh start")
	wrong := w.right(ctx)
	r.Wrong = len(wrong)
	for _, mismatch := range wrong[:min(len(wrong), 10)] {
		say("wrong: %s", mismatch)
	}
	different, err := w.sameAsFresh(ctx)
	r.Different = len(different)
	for _, name := range slices.Sorted(maps.Keys(different))[:min(len(different), 10)] {
		say("%s differs from a fresh start: %s", name, different[name])
	}
	return err
}

// watch takes samples until ctx ends. It prints one each minute, and keeps a heap profile.
func (w *Environment) watch(ctx context.Context, o Options, l *traffic) []sample {
	var out []sample
	tick := time.NewTicker(max(o.Duration/120, time.Second))
	defer tick.Stop()
	began := time.Now()
	reported := began
	for {
		s, err := w.sample(ctx)
		if err == nil {
			out = append(out, s)
		}
		if len(out) > 0 && time.Since(reported) >= time.Minute {
			reported = time.Now()
			o.Say("%d requests, %d lost, the longest %s; %s", l.Requests(), len(l.lost()), l.Longest().Round(time.Millisecond), out[len(out)-1])
			if err := w.replicas[len(w.replicas)-1].keepHeap(ctx, o.Logs, reported.Sub(began)); err != nil {
				o.Say("cannot keep a profile of the heap: %v", err)
			}
		}
		select {
		case <-ctx.Done():
			return out
		case <-tick.C:
		}
	}
}
