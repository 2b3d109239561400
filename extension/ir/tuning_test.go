// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"testing"
)

func TestTuningName(t *testing.T) {
	const list = "tailscale/services/shop/web/80/http"
	cases := map[string]struct {
		reason string
		tuning Tuning
		want   string
	}{
		"None":   {reason: "A list without settings should keep its name.", want: list},
		"Health": {reason: "The port of health checks should be in the name.", tuning: Tuning{HealthPort: 9090}, want: list + "+health=9090"},
		"Local":  {reason: "The preference of the local zone should be in the name.", tuning: Tuning{PreferLocal: true}, want: list + "+local"},
		"All": {
			reason: "The transport and the weights of zones should be in the name.",
			tuning: Tuning{Transport: "00ff", HealthPort: 1, PreferLocal: true, Zones: []ZoneWeight{{Zone: "eu-1a", Weight: 0}, {Zone: "eu-1b", Weight: 1<<32 - 1}}},
			want:   list + "+tls=00ff+health=1+local+zone=eu-1a:0+zone=eu-1b:4294967295",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := tc.tuning.Name(list)
			if got != tc.want {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
			base, back, ok := ParseTuning(got)
			if !ok || base != list || !back.Equal(tc.tuning) {
				t.Errorf("%s\nParseTuning(%q): want %+v, got %q, %+v, %t", tc.reason, got, tc.tuning, base, back, ok)
			}
		})
	}
	for _, bad := range []string{"+", "+tls=", "+health=", "+health=65536", "+zone=a", "+zone=a:-1", "+more", "+local+"} {
		if _, got, ok := ParseTuning(list + bad); ok {
			t.Errorf("ParseTuning(%q): want nothing, got %+v", bad, got)
		}
	}
}
