// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package load sends repeated requests to a URL, and reports how long responses took and
// how many requests failed. The caller provides the function that dials.
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

// Options are the options of a run.
type Options struct {
	URL string

	// Host is the Host header. Empty means the URL's host.
	Host string

	// TLS holds the CAs to trust. Nil means those of this machine.
	TLS *tls.Config

	// Dial opens a connection.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	// Workers is the number of concurrent clients. One by default.
	Workers int

	// Rate is the maximum number of requests per second of all workers together. 0 means
	// no limit.
	Rate float64

	// NewConnections sends every request on a new connection.
	NewConnections bool

	// Expect is a text that a response must contain. Empty means that any response is valid.
	Expect string

	// Timeout is that of one request.
	Timeout time.Duration
}

// A Report is the result of a run. Durations are in seconds.
type Report struct {
	// Requests is the number of requests that succeeded, Failed of those that failed.
	Requests int `json:"requests"`
	Failed   int `json:"failed"`

	// Seconds is the duration of the run.
	Seconds float64 `json:"seconds"`

	// P50 and P99 are the 50th and 99th percentiles of the response times.
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`

	// Gap is the longest time between two consecutive responses, of all workers together.
	Gap float64 `json:"gap"`

	// First is the time of the first response.
	First time.Time `json:"first,omitzero"`

	// Last is the time of the last response.
	Last time.Time `json:"last,omitzero"`

	// Errors are the first errors, at most ten, each with its time.
	Errors []string `json:"errors,omitempty"`

	// Failures are the first requests that failed, at most a thousand.
	Failures []Failure `json:"failures,omitempty"`
}

// A Failure is a request that failed.
type Failure struct {
	Began time.Time `json:"began"`
	Ended time.Time `json:"ended"`
	Error string    `json:"error"`
}

// maxFailures is the maximum number of failures in a report.
const maxFailures = 1000

// maxErrors is the maximum number of errors in a report.
const maxErrors = 10

// Run sends requests until the context ends.
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

// First sends a request per interval until one succeeds, and reports the time of the
// response.
func First(ctx context.Context, o Options, interval time.Duration) (Report, error) {
	r, a := o.until(ctx, interval, func(a answer) bool { return a.err == nil })
	return r, errors.Wrapf(a.err, "no answer from %q", o.URL)
}

// Gone sends a request per interval until one succeeds, calls answered, and continues until one
// fails. The report has the times of the first and the last response.
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
		return r, errors.Errorf("%q still answers", o.URL)
	}
	return r, nil
}

// until sends requests until last returns true for a result, or until the context ends. It
// returns the last result.
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

// An answer is the result of a request, which may be an error.
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

// closing returns a client for one request, and a function that closes its connection. This
// side must close it first, because the first to close remembers the ports for a minute.
// Otherwise a userspace tailscaled, which picks random ports, could reuse ports that a
// userspace tailscaled on the other side still remembers.
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
			_ = c.Close() // The request has ended.
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
	req.Host = o.Host // Empty means the URL's.
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

// pace returns a channel with a token for each request, or nil without a rate.
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

// A recorder collects the answers of all workers.
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

// percentile returns the pth percentile of sorted times.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*p+99)/100-1]
}
