// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package load asks a URL again and again, and says how long answers took and
// how many did not come. How connections are made is the caller's business.
package load

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// Options of a run.
type Options struct {
	URL string

	// Host to ask for. Empty means the URL's.
	Host string

	// TLS holds the CAs to trust. Nil means those of this machine.
	TLS *tls.Config

	// Dial makes a connection.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	// Workers ask side by side. One by default.
	Workers int

	// Rate is how many requests a second all workers together begin at most. 0 is
	// as many as they can.
	Rate float64

	// NewConnections sends every request on a new connection.
	NewConnections bool

	// Expect is a text that an answer must contain. Any answer will do without it.
	Expect string

	// Timeout of one request.
	Timeout time.Duration
}

// A Report is what a run saw. Durations are in seconds.
type Report struct {
	// Requests that were answered, and those that were not.
	Requests int `json:"requests"`
	Failed   int `json:"failed"`

	// Seconds that the run took.
	Seconds float64 `json:"seconds"`

	// P50 and P99 are the times that half, and 99 of 100, answers stay within.
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`

	// Gap is the longest time between two answers in a row, of all workers together.
	Gap float64 `json:"gap"`

	// First is when the first answer was there.
	First time.Time `json:"first,omitzero"`

	// Last is when the last answer was there.
	Last time.Time `json:"last,omitzero"`

	// Errors that were seen, at most ten, each with its time.
	Errors []string `json:"errors,omitempty"`

	// Failures are the requests that were not answered, at most a thousand.
	Failures []Failure `json:"failures,omitempty"`
}

// A Failure is a request that was not answered.
type Failure struct {
	Began time.Time `json:"began"`
	Ended time.Time `json:"ended"`
	Error string    `json:"error"`
}

// maxFailures is how many failures a report has.
const maxFailures = 1000

// maxErrors is how many errors a report has.
const maxErrors = 10

// Run asks until the context ends.
func Run(ctx context.Context, o Options) Report {
	began := time.Now()
	r := &recorder{}
	tokens := pace(ctx, o.Rate)
	var wg sync.WaitGroup
	for range max(o.Workers, 1) {
		wg.Go(func() {
			c := o.client()
			defer c.CloseIdleConnections()
			for ctx.Err() == nil && wait(ctx, tokens) {
				r.add(o.ask(ctx, c))
			}
		})
	}
	wg.Wait()
	return r.report(time.Since(began))
}

// First asks every few milliseconds until there is an answer, and says when that
// was.
func First(ctx context.Context, o Options, interval time.Duration) (Report, error) {
	r, a := o.until(ctx, interval, func(a answer) bool { return a.err == nil })
	return r, errors.Wrapf(a.err, "no answer from %q", o.URL)
}

// Gone asks every few milliseconds until there is an answer, calls answered, and asks until
// there is none any more. The report says when the first and the last one were.
func Gone(ctx context.Context, o Options, interval time.Duration, answered func()) (Report, error) {
	reachable := false
	r, a := o.until(ctx, interval, func(a answer) bool {
		if a.err == nil && !reachable {
			reachable = true
			answered()
		}
		return reachable && a.err != nil
	})
	if !reachable {
		return r, errors.Wrapf(a.err, "no answer from %q", o.URL)
	}
	if a.err == nil || ctx.Err() != nil {
		return r, errors.Errorf("%q answers still", o.URL)
	}
	return r, nil
}

// until sends requests until last returns true for an answer, or for a failure. It returns that
// result, or the last one when the context ended.
func (o Options) until(ctx context.Context, interval time.Duration, last func(answer) bool) (Report, answer) {
	began := time.Now()
	c := o.client()
	t := time.NewTicker(interval)
	defer t.Stop()
	r := &recorder{}
	for {
		a := o.ask(ctx, c)
		r.add(a)
		if last(a) || ctx.Err() != nil {
			return r.report(time.Since(began)), a
		}
		select {
		case <-ctx.Done():
			return r.report(time.Since(began)), a
		case <-t.C:
		}
	}
}

// An answer, or the lack of one.
type answer struct {
	at   time.Time
	took time.Duration
	err  error
}

func (o Options) client() *http.Client {
	return &http.Client{
		Transport: &http.Transport{DialContext: o.Dial, TLSClientConfig: o.TLS, MaxIdleConnsPerHost: 1},
		Timeout:   cmp.Or(o.Timeout, 10*time.Second),
	}
}

// closing returns a client for one request, and what ends its connection. It is
// this side that ends it: who does remembers the connection's ports for a minute,
// and a tailscaled in userspace, which picks ports at random, would else meet ports
// again that one in userspace on the other side has not forgotten.
func (o Options) closing() (*http.Client, func()) {
	var mu sync.Mutex
	var conns []net.Conn
	dial := o.Dial
	o.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			conns = append(conns, c)
		}
		return c, err
	}
	return o.client(), func() {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range conns {
			_ = c.Close() // It is done with.
		}
	}
}

// ask sends one request. A request that has begun is completed, so that the end of a run loses
// none.
func (o Options) ask(ctx context.Context, c *http.Client) answer {
	began := time.Now()
	if o.NewConnections {
		var end func()
		c, end = o.closing()
		defer end()
	}
	err := o.get(context.WithoutCancel(ctx), c)
	at := time.Now()
	return answer{at: at, took: at.Sub(began), err: err}
}

func (o Options) get(ctx context.Context, c *http.Client) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, o.URL, nil)
	if err != nil {
		return errors.Wrap(err, "cannot make a request")
	}
	req.Host = o.Host // Empty is the URL's.
	rsp, err := c.Do(req)
	if err != nil {
		return errors.Wrap(err, "cannot get")
	}
	var body bytes.Buffer
	dst := io.Discard
	if o.Expect != "" {
		dst = &body
	}
	_, err = io.Copy(dst, rsp.Body)
	if err := errors.Join(err, rsp.Body.Close()); err != nil {
		return errors.Wrap(err, "cannot read the answer")
	}
	if rsp.StatusCode != http.StatusOK {
		return errors.Errorf("answered %s", rsp.Status)
	}
	if !strings.Contains(body.String(), o.Expect) {
		return errors.Errorf("answered %.200q, without %q", body.String(), o.Expect)
	}
	return nil
}

// pace gives a token for each request. It is nil when there is no rate.
func pace(ctx context.Context, rate float64) <-chan time.Time {
	if rate <= 0 {
		return nil
	}
	t := time.NewTicker(time.Duration(float64(time.Second) / rate))
	context.AfterFunc(ctx, t.Stop)
	return t.C
}

func wait(ctx context.Context, tokens <-chan time.Time) bool {
	if tokens == nil {
		return true
	}
	select {
	case <-tokens:
		return true
	case <-ctx.Done():
		return false
	}
}

// A recorder gathers answers of all workers.
type recorder struct {
	mu     sync.Mutex
	took   []time.Duration
	gap    time.Duration
	failed int
	first  time.Time
	last   time.Time
	errs   []string
	fails  []Failure
}

func (r *recorder) add(a answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a.err != nil {
		r.failed++
		if len(r.fails) < maxFailures {
			r.fails = append(r.fails, Failure{Began: a.at.Add(-a.took), Ended: a.at, Error: a.err.Error()})
		}
		if len(r.errs) < maxErrors {
			r.errs = append(r.errs, a.at.UTC().Format("15:04:05.000")+" after "+a.took.Round(time.Millisecond).String()+": "+a.err.Error())
		}
		return
	}
	if r.first.IsZero() || a.at.Before(r.first) {
		r.first = a.at
	}
	if a.at.After(r.last) {
		if !r.last.IsZero() {
			r.gap = max(r.gap, a.at.Sub(r.last))
		}
		r.last = a.at
	}
	r.took = append(r.took, a.took)
}

func (r *recorder) report(took time.Duration) Report {
	slices.Sort(r.took)
	return Report{
		Requests: len(r.took), Failed: r.failed, Seconds: took.Seconds(), Gap: r.gap.Seconds(), First: r.first, Last: r.last, Errors: r.errs, Failures: r.fails,
		P50: percentile(r.took, 50).Seconds(), P99: percentile(r.took, 99).Seconds(),
	}
}

// percentile is the time that p of 100 stay within, of sorted times.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*p+99)/100-1]
}
