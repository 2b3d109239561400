// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A Client sends the requests of a worker, one after the other.
type Client interface {
	// Send sends the nth request of the load and returns the answer. An error means that the
	// request is lost.
	Send(ctx context.Context, n int) (answer string, err error)

	// Close closes the client's connections.
	Close()
}

// Options are the options of a load.
type Options struct {
	// Client returns the client of a worker.
	Client func(worker int) Client

	// Workers is the number of concurrent clients. One by default. The nth request is sent by worker
	// n modulo Workers.
	Workers int

	// Rate is the maximum number of requests per second of all workers together. 0 means no limit.
	Rate float64

	// Interval is the minimum time between the starts of two requests of a worker. 0 means no limit.
	Interval time.Duration

	// Timeout is that of one request. 10 s by default.
	Timeout time.Duration

	// Observe receives each request when it has ended. Calls may be concurrent.
	Observe func(r Request)
}

// A Request is a request that has ended.
type Request struct {
	// N is the number of the request, from 0.
	N int

	Began, Ended time.Time

	// Answer is what the client received.
	Answer string

	// Err is not nil if the request is lost.
	Err error
}

// A Load sends requests in the background.
type Load struct {
	recorder

	began   time.Time
	cancel  context.CancelFunc
	workers sync.WaitGroup
}

// Start starts a load. It ends with the context, or with Stop.
func Start(ctx context.Context, o Options) *Load {
	ctx, cancel := context.WithCancel(ctx)
	l := &Load{began: time.Now(), cancel: cancel}
	workers := max(o.Workers, 1)
	tokens, stop := ticks(o.Rate)
	context.AfterFunc(ctx, stop)
	for i := range workers {
		l.workers.Go(func() { l.work(ctx, o, tokens, i, workers) })
	}
	return l
}

// Stop ends the load and returns its report. Requests that have begun are completed.
func (l *Load) Stop() Report {
	l.cancel()
	return l.Wait()
}

// Wait waits until the load has ended, and returns its report.
func (l *Load) Wait() Report {
	l.workers.Wait()
	l.cancel()
	return l.report(time.Since(l.began))
}

// Run sends requests until the context ends.
func Run(ctx context.Context, o Options) Report { return Start(ctx, o).Wait() }

// work sends the requests of a worker.
func (l *Load) work(ctx context.Context, o Options, tokens <-chan time.Time, worker, workers int) {
	c := o.Client(worker)
	defer c.Close()
	var rests <-chan time.Time
	if o.Interval > 0 {
		t := time.NewTicker(o.Interval)
		defer t.Stop()
		rests = t.C
	}
	for n := worker; wait(ctx, tokens); n += workers {
		r := send(ctx, c, n, cmp.Or(o.Timeout, 10*time.Second))
		l.add(r)
		if o.Observe != nil {
			o.Observe(r)
		}
		if !wait(ctx, rests) {
			return
		}
	}
}

// send sends one request. A request that has begun is completed, so that the end of a load loses
// none.
func send(ctx context.Context, c Client, n int, timeout time.Duration) Request {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	r := Request{N: n, Began: time.Now()}
	r.Answer, r.Err = c.Send(ctx, n)
	r.Ended = time.Now()
	return r
}

// ticks returns a channel with a tick for each request, and a function that stops the ticks. The
// channel is nil without a rate.
func ticks(rate float64) (<-chan time.Time, func()) {
	if rate <= 0 {
		return nil, func() {}
	}
	t := time.NewTicker(time.Duration(float64(time.Second) / rate))
	return t.C, t.Stop
}

// wait waits for a tick, if there are any, and reports whether the context is still active.
func wait(ctx context.Context, ticks <-chan time.Time) bool {
	if ctx.Err() != nil || ticks == nil {
		return ctx.Err() == nil
	}
	select {
	case <-ticks:
		return true
	case <-ctx.Done():
		return false
	}
}

// First sends one request after the other until one has a response, and reports its time.
func First(ctx context.Context, o Options) (Report, error) {
	r, last := o.until(ctx, func(r Request) bool { return r.Err == nil })
	return r, errors.Wrap(last.Err, "no answer")
}

// Gone sends one request after the other until one has a response, calls answered, and continues
// until one is lost. The report has the times of the first and the last response.
func Gone(ctx context.Context, o Options, answered func()) (Report, error) {
	reachable := false
	r, last := o.until(ctx, func(r Request) bool {
		if r.Err == nil && !reachable {
			reachable = true
			answered()
		}
		return reachable && r.Err != nil
	})
	if !reachable {
		return r, errors.Wrap(last.Err, "no answer")
	}
	if last.Err == nil || ctx.Err() != nil {
		return r, errors.New("there are still answers")
	}
	return r, nil
}

// until runs a load of one worker until end returns true for a request, or until the context ends.
// It returns the last request.
func (o Options) until(ctx context.Context, end func(Request) bool) (Report, Request) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	last := Request{Err: errors.New("no request was sent")}
	o.Workers = 1
	o.Observe = func(r Request) {
		if last = r; end(r) {
			cancel()
		}
	}
	report := Run(ctx, o)
	return report, last
}
