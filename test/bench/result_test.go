// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestP95(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(100 - i)
	}
	for name, tc := range map[string]struct {
		reason string
		input  []time.Duration
		want   time.Duration
	}{
		"None":    {reason: "The percentile of no durations is 0"},
		"One":     {reason: "The percentile of one duration is that duration", input: []time.Duration{7}, want: 7},
		"Hundred": {reason: "95 of 100 are at most 95, in any order", input: hundred, want: 95},
		"Twenty":  {reason: "One of twenty may be slow", input: append(make([]time.Duration, 19), 9), want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := percentile(tc.input, 95); got != tc.want {
				t.Errorf("%s: got %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}

func TestPaired(t *testing.T) {
	ms := func(all ...int) (out []time.Duration) {
		for _, n := range all {
			out = append(out, time.Duration(n)*time.Millisecond)
		}
		return out
	}
	result := func(value, baseline, ratio float64, holds bool) Result {
		return Result{Name: "a", Value: value, Unit: "ms", Baseline: &baseline, Ratio: &ratio, Goal: 1.5, Holds: holds}
	}
	for name, tc := range map[string]struct {
		reason          string
		ours, baselines []time.Duration
		want            Result
	}{
		"Outlier": {
			reason: "One outlier does not change the ratio", ours: ms(200, 220, 210), baselines: ms(190, 70, 200),
			want: result(210, 190, 1.053, true),
		},
		"Load": {
			reason: "Load on both times of a pair does not change the ratio", ours: ms(200, 2000, 100), baselines: ms(100, 1000, 50),
			want: result(200, 100, 2, false),
		},
		"Nothing": {
			reason: "A goal without measurements is missed", want: Result{Name: "a", Unit: "ms", Baseline: new(float64), Ratio: new(float64), Goal: 1.5},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := paired("a", tc.ours, tc.baselines, 1.5)
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

func TestResults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out", "bench.json")
	if err := write(path, []Result{plain("a", 3, "calls", 2), plain("b", 1, "calls", 2)}); err != nil {
		t.Fatal(err)
	}
	ratio := compared("c", 10, 4, "s", 3)
	if err := write(path, []Result{plain("a", 2, "calls", 2), ratio}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got []Result
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	baseline, r := 4.0, 2.5
	want := []Result{
		{Name: "b", Value: 1, Unit: "calls", Goal: 2, Holds: true},
		{Name: "a", Value: 2, Unit: "calls", Goal: 2, Holds: true},
		{Name: "c", Value: 10, Unit: "s", Baseline: &baseline, Ratio: &r, Goal: 3, Holds: true},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("results of two runs: -want, +got:\n%s", d)
	}
	if err := missed(got); err != nil {
		t.Errorf("all goals hold, got error: %v", err)
	}
	if err := missed([]Result{plain("a", 3, "calls", 2)}); err == nil {
		t.Error("a goal is missed, got no error")
	}
}
