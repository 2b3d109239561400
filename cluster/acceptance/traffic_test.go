// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/test/load"
)

func TestMoveIn(t *testing.T) {
	event := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(seconds float64, answer string) load.Request {
		r := load.Request{Ended: event.Add(time.Duration(seconds * float64(time.Second))), Answer: answer}
		if answer == "" {
			r.Err = errNoRoute
		}
		return r
	}
	cases := map[string]struct {
		reason string
		probes []load.Request
		want   move
	}{
		"Never": {
			reason: "Traffic has not moved if no other host answers.",
			probes: []load.Request{at(-1, "a"), at(1, "a"), at(2, "")},
			want:   move{blackHole: 2 * time.Second},
		},
		"Gap": {
			reason: "The gap begins with the last answer before the event.",
			probes: []load.Request{at(-2, "a"), at(-1, "a"), at(1, ""), at(4, "b"), at(10, "b")},
			want:   move{to: "b", delay: 4 * time.Second, blackHole: 5 * time.Second},
		},
		"Overlap": {
			reason: "The old host may answer for a while, and the longest gap counts.",
			probes: []load.Request{at(-1, "a"), at(1, "a"), at(4, "a"), at(5, "b")},
			want:   move{to: "b", delay: 5 * time.Second, blackHole: 3 * time.Second},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, moveIn(tc.probes, "a", event), cmp.AllowUnexported(move{})); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
