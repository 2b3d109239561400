// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Report is the result of a load. Durations are in seconds.
type Report struct {
	// Requests is the number of all requests, Lost of those that were lost.
	Requests int `json:"requests"`
	Lost     int `json:"lost"`

	// Seconds is the duration of the load.
	Seconds float64 `json:"seconds"`

	// P50 and P99 are the 50th and 99th percentiles of the response times, and Longest is the
	// longest one.
	P50     float64 `json:"p50"`
	P99     float64 `json:"p99"`
	Longest float64 `json:"longest"`

	// Gap is the longest time between two consecutive responses, of all workers together.
	Gap float64 `json:"gap"`

	// First is the time of the first response.
	First time.Time `json:"first,omitzero"`

	// Last is the time of the last response.
	Last time.Time `json:"last,omitzero"`

	// Errors are those of the first lost requests, at most ten, each with its time.
	Errors []string `json:"errors,omitempty"`

	// Failures are the first lost requests, at most a thousand.
	Failures []Failure `json:"failures,omitempty"`
}

// Answered returns the number of requests that were not lost.
func (r Report) Answered() int { return r.Requests - r.Lost }

// String returns how many requests were lost, and the first errors.
func (r Report) String() string {
	return fmt.Sprintf("%d of %d requests were lost: %s", r.Lost, r.Requests, strings.Join(r.Errors, "; "))
}

// A Failure is a lost request.
type Failure struct {
	Began time.Time `json:"began"`
	Ended time.Time `json:"ended"`
	Error string    `json:"error"`
}

// String returns the times and the error.
func (f Failure) String() string {
	const format = time.TimeOnly + ".000"
	return fmt.Sprintf("%s to %s: %s", f.Began.UTC().Format(format), f.Ended.UTC().Format(format), f.Error)
}

const (
	// maxFailures is the maximum number of failures in a report: more than an hour of 25 requests a
	// second, so that a long outage does not hide the requests that are lost after it.
	maxFailures = 100_000

	// maxErrors is the maximum number of errors in a report.
	maxErrors = 10
)

// A recorder collects the requests of all workers.
type recorder struct {
	mu       sync.Mutex
	times    []time.Duration
	longest  time.Duration
	gap      time.Duration
	first    time.Time
	last     time.Time
	failures []Failure
}

func (r *recorder) add(q Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q.Err != nil {
		r.failures = append(r.failures, Failure{Began: q.Began, Ended: q.Ended, Error: q.Err.Error()})
		return
	}
	if r.first.IsZero() || q.Ended.Before(r.first) {
		r.first = q.Ended
	}
	if q.Ended.After(r.last) {
		if !r.last.IsZero() {
			r.gap = max(r.gap, q.Ended.Sub(r.last))
		}
		r.last = q.Ended
	}
	took := q.Ended.Sub(q.Began)
	r.times = append(r.times, took)
	r.longest = max(r.longest, took)
}

// Requests returns the number of requests that have ended.
func (r *recorder) Requests() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.times) + len(r.failures)
}

// Longest returns the longest response time so far.
func (r *recorder) Longest() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.longest
}

// Failures returns all lost requests so far.
func (r *recorder) Failures() []Failure {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.failures)
}

func (r *recorder) report(took time.Duration) Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.Sort(r.times)
	out := Report{
		Requests: len(r.times) + len(r.failures), Lost: len(r.failures), Seconds: took.Seconds(),
		P50: percentile(r.times, 50).Seconds(), P99: percentile(r.times, 99).Seconds(), Longest: r.longest.Seconds(),
		Gap: r.gap.Seconds(), First: r.first, Last: r.last,
		Failures: slices.Clone(r.failures[:min(len(r.failures), maxFailures)]),
	}
	for _, f := range r.failures[:min(len(r.failures), maxErrors)] {
		out.Errors = append(out.Errors, f.Ended.UTC().Format("15:04:05.000")+" after "+f.Ended.Sub(f.Began).Round(time.Millisecond).String()+": "+f.Error)
	}
	return out
}

// percentile returns the pth percentile of sorted times.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*p+99)/100-1]
}
