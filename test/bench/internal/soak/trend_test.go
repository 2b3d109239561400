// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tailscale-gateway/tailscale-gateway/test/load"
)

// at returns a time of the test's timeline.
func at(s int) time.Time { return time.Unix(int64(s), 0) }

func spanOf(from, to int) load.Span { return load.Span{Began: at(from), Ended: at(to)} }

func TestTrend(t *testing.T) {
	samples := func(values ...float64) (out []sample) {
		for i, v := range values {
			out = append(out, sample{at: at(i), values: map[string]float64{Heap: v, Streams: 1}})
		}
		return out
	}
	idle := samples(9, 9, 4, 4, 4, 40, 40, 40)
	busy := samples(9, 9, 4, 4, 4, 9, 9, 9)
	leaky := samples(9, 9, 4, 5, 6, 14, 15, 16)
	for _, s := range idle[5:] {
		s.values[Streams] = 0
	}
	reconnected := samples(9, 9, 1, 2, 3, 4, 4)
	for i, streams := range []float64{200, 200, 10, 100, 150, 190, 200} {
		reconnected[i].values[Streams] = streams
	}
	for _, s := range [][]sample{busy, leaky} {
		for i, point := range s {
			point.values[hooks] = float64(max(i-4, 0))
		}
	}
	for name, tc := range map[string]struct {
		reason  string
		samples []sample
		want    Trend
		fails   bool
	}{
		"Still":       {reason: "A constant value does not grow", samples: samples(9, 9, 4, 4, 4), want: Trend{First: 4, Last: 4}},
		"Grows":       {reason: "Growth by half of the mean in two seconds is growth by 200% in eight", samples: samples(0, 0, 3, 4, 5), want: Trend{First: 3, Last: 5, Growth: 200}},
		"Swings":      {reason: "A value that returns to its start has not grown", samples: samples(0, 0, 4, 6, 4), want: Trend{First: 4, Last: 4}},
		"Odd":         {reason: "One outlier is no trend", samples: samples(0, 0, 4, 4, 4, 4, 9), want: Trend{First: 4, Last: 9}},
		"Idle":        {reason: "Samples without streams do not count", samples: idle, want: Trend{First: 4, Last: 4}},
		"Reconnected": {reason: "Memory of streams that return is no growth", samples: reconnected, want: Trend{First: 1, Last: 4}},
		"Busy":        {reason: "Memory of hooks is no growth", samples: busy, want: Trend{First: 4, Last: 9}},
		"Leaky":       {reason: "A value that grows with hooks and without grows", samples: leaky, want: Trend{First: 4, Last: 16, Growth: 80}},
		"None":        {reason: "A value that stays 0 does not grow", samples: samples(1, 1, 0, 0, 0)},
		"Few":         {reason: "One sample has no trend", samples: samples(1, 1, 1), fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := trend(tc.samples, Heap, at(2), 8*time.Second)
			if d := cmp.Diff(tc.want, got, cmpopts.EquateApprox(0, 1e-9)); d != "" || (err != nil) != tc.fails {
				t.Errorf("%s: %v, -want, +got:\n%s", tc.reason, err, d)
			}
		})
	}
}

func TestLate(t *testing.T) {
	down := []outage{{Span: spanOf(10, 70), name: "down"}}
	for name, tc := range map[string]struct {
		reason string
		served load.Span
		want   time.Duration
		outage string
	}{
		"Calm":   {reason: "Without an outage, the whole time counts", served: spanOf(1, 4), want: 3 * time.Second, outage: calm},
		"After":  {reason: "A change that is served after an outage counts from the outage's end", served: spanOf(5, 75), want: 5 * time.Second, outage: "down"},
		"Within": {reason: "A change that is written in an outage counts from the outage's end", served: spanOf(60, 72), want: 2 * time.Second, outage: "down"},
		"Amid":   {reason: "A change that is served in an outage counts from its write", served: spanOf(20, 35), want: 15 * time.Second, outage: "down"},
	} {
		t.Run(name, func(t *testing.T) {
			got := (&markers{all: []load.Span{tc.served}}).late(down)
			if d := cmp.Diff(map[string]time.Duration{tc.outage: tc.want}, got); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}
