// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
)

func TestTailnetFault(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		want   []tailnetsim.Fault
	}{
		"Default": {
			reason: "The API fails by default.",
			want:   []tailnetsim.Fault{{Status: 500}},
		},
		"Limited": {
			reason: "Control returns Retry-After.",
			args:   []string{"--on=control", "--status=429", "--retry-after=3s"},
			want:   []tailnetsim.Fault{{Path: tailnetsim.ControlPaths, Status: 429, RetryAfter: 3}},
		},
		"Refused": {
			reason: "Control and relay fail together.",
			args:   []string{"--on=control,derp", "--refuse"},
			want:   []tailnetsim.Fault{{Path: tailnetsim.ControlPaths, Status: 500, Refuse: true}, {Path: tailnetsim.DERPPaths, Status: 500, Refuse: true}},
		},
		"Slow": {
			reason: "Responses are late and complete.",
			args:   []string{"--on=control", "--latency=1500ms", "--status=0"},
			want:   []tailnetsim.Fault{{Path: tailnetsim.ControlPaths, LatencyMS: 1500}},
		},
		"Path": {
			reason: "A path replaces --on.",
			args:   []string{"--path=/keys$"},
			want:   []tailnetsim.Fault{{Path: "/keys$", Status: 500}},
		},
		"Clear": {
			reason: "All faults end.",
			args:   []string{"--clear"},
			want:   []tailnetsim.Fault{},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &tailnetFaultCmd{}
			p, err := kong.New(c)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Parse(tc.args); err != nil {
				t.Fatalf("\n%s\nParse(...): %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, c.faults(), cmpopts.IgnoreUnexported(tailnetsim.Fault{})); diff != "" {
				t.Errorf("\n%s\nfaults(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
