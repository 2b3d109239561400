// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/test/load"
)

func TestReport(t *testing.T) {
	event := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	lost := func(delays ...time.Duration) load.Report {
		r := load.Report{Requests: 100, Lost: len(delays)}
		for _, d := range delays {
			r.Failures = append(r.Failures, load.Failure{Began: event.Add(d), Ended: event.Add(d + 2*time.Second)})
		}
		return r
	}
	cases := map[string]struct {
		reason string
		goal   time.Duration
		report load.Report
		want   string
		missed bool
	}{
		"None": {
			reason: "A load that loses nothing reaches each goal.",
			report: lost(),
			want:   "event two 100 0 0s none lost holds",
		},
		"Lost": {
			reason: "Without a time, no request may get lost.",
			report: lost(time.Second),
			want:   "event two 100 1 1s none lost MISSED",
			missed: true,
		},
		"Within": {
			reason: "The times at which lost requests began count, and not those at which their clients gave up.",
			goal:   5 * time.Second,
			report: lost(100*time.Millisecond, 4*time.Second),
			want:   "event two 100 2 4s lost for 5s holds",
		},
		"Beyond": {
			reason: "A later one misses the goal.",
			goal:   5 * time.Second,
			report: lost(5100 * time.Millisecond),
			want:   "event two 100 1 5.1s lost for 5s MISSED",
			missed: true,
		},
		"Before": {
			reason: "One from before the event counts as at the event.",
			goal:   5 * time.Second,
			report: lost(-time.Second),
			want:   "event two 100 1 0s lost for 5s holds",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tr := &trial{results: []result{{name: "event", answered: "two", report: tc.report, outage: outage(tc.report, event), goal: tc.goal}}}
			out := &bytes.Buffer{}
			err := tr.report(out)
			if (err != nil) != tc.missed {
				t.Errorf("\n%s\nreport(...): %v, want an error: %t", tc.reason, err, tc.missed)
			}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if got := strings.Join(strings.Fields(lines[len(lines)-1]), " "); got != tc.want {
				t.Errorf("\n%s\nreport(...): got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
