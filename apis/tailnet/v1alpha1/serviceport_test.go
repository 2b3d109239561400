// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "testing"

func TestServicePortNumber(t *testing.T) {
	cases := map[ServicePort]int32{
		"tcp:443": 443, "tcp:65535": 65535,
		"tcp:0": 0, "tcp:65536": 0, "udp:53": 0, "tcp:": 0, "443": 0, "tcp:+1": 0, ServicePortAll: 0,
	}
	for p, want := range cases {
		if got, ok := p.Number(); ok != (want > 0) || ok && got != want {
			t.Errorf("ServicePort(%q).Number(): want %d, got %d, %t", p, want, got, ok)
		}
	}
}
