// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/hops"
)

func TestPerRequest(t *testing.T) {
	start := map[string]time.Duration{"agent": time.Second, "idle": time.Second}
	end := map[string]time.Duration{"agent": 2 * time.Second, "idle": time.Second, "tailscaled": 3 * time.Second}
	total, output := perRequest(start, end, 1000)
	if total != 4*time.Millisecond {
		t.Errorf("perRequest(...): want 4ms in all, got %s", total)
	}
	if diff := cmp.Diff("tailscaled 3ms, agent 1ms", output); diff != "" {
		t.Errorf("The longest time comes first, and programs without processor time are left out: -want, +got:\n%s", diff)
	}
}

func TestPrintHops(t *testing.T) {
	var b strings.Builder
	us := time.Microsecond
	if err := printHops(&b, hops.Costs{
		Direct:  hops.Cost{Request: 5 * us, Connect: 40 * us},
		Tailnet: hops.Cost{Request: 205 * us, Connect: 1040 * us, Proxy: 60 * us, Peer: 65 * us},
		Agent:   hops.Cost{Request: 265 * us, Connect: 1140 * us, Agent: 30 * us, Proxy: 70 * us, Peer: 75 * us},
	}); err != nil {
		t.Fatal(err)
	}
	got := make([]string, 0, 4)
	for line := range strings.Lines(b.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := []string{
		"HOP ADDS TO A REQUEST (us) ADDS TO A CONNECTION (us) PROCESSOR TIME OF A REQUEST (us)",
		"client and target, on the loopback 5 40 -",
		"tailscaled of proxy and peer 200 1000 70, 75",
		"agent 60 100 30",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Each row is the difference to the previous hop: -want, +got:\n%s", diff)
	}
}
