// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReport(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(1000+int64(s), 0).UTC() }
	r := &recorder{}
	// A lost request is no answer, and workers may report in another order.
	for _, q := range []Request{
		{Began: at(0), Ended: at(1)}, {Began: at(1), Ended: at(3)}, {Began: at(1), Ended: at(2)},
		{Began: at(0), Ended: at(5), Err: io.EOF}, {Began: at(5), Ended: at(8)}, {Began: at(8), Ended: at(9)},
	} {
		r.add(q)
	}
	want := Report{
		Requests: 6, Lost: 1, Seconds: 10, P50: 1, P99: 3, Longest: 3, Gap: 5, First: at(1), Last: at(9),
		Errors:   []string{"00:16:45.000 after 5s: EOF"},
		Failures: []Failure{{Began: at(0), Ended: at(5), Error: "EOF"}},
	}
	got := r.report(10 * time.Second)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("report(...): -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff("1 of 6 requests were lost: 00:16:45.000 after 5s: EOF", got.String()); diff != "" {
		t.Errorf("String(): -want, +got:\n%s", diff)
	}
}

func TestReportLimits(t *testing.T) {
	r := &recorder{}
	for range maxFailures + 1 {
		r.add(Request{Err: io.EOF})
	}
	got := r.report(time.Second)
	if got.Lost != maxFailures+1 || len(got.Failures) != maxFailures || len(got.Errors) != maxErrors {
		t.Errorf("report(...): want all counted and the first listed, got %d lost, %d failures, %d errors", got.Lost, len(got.Failures), len(got.Errors))
	}
	if got := len(r.Failures()); got != maxFailures+1 {
		t.Errorf("Failures(): want all, got %d", got)
	}
}

func TestPercentile(t *testing.T) {
	var ds []time.Duration
	for i := range 100 {
		ds = append(ds, time.Duration(i+1))
	}
	for p, want := range map[int]time.Duration{50: 50, 99: 99, 100: 100} {
		if got := percentile(ds, p); got != want {
			t.Errorf("percentile(1..100, %d): want %d, got %d", p, want, got)
		}
	}
	if got := percentile(nil, 99); got != 0 {
		t.Errorf("percentile(nil, 99): want 0, got %d", got)
	}
}
