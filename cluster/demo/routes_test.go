// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAddressURL(t *testing.T) {
	cases := map[string]struct {
		reason  string
		address string
		want    string
	}{
		"IPv4": {
			reason:  "An IPv4 address should need no brackets.",
			address: "10.201.0.1",
			want:    "http://10.201.0.1/",
		},
		"IPv6": {
			reason:  "An IPv6 address should have brackets, without which its end would be a port.",
			address: "fd10:201::1",
			want:    "http://[fd10:201::1]/",
		},
		"Name": {
			reason:  "A name, which some clouds give Gateways, should stay as it is.",
			address: "lb.example.com",
			want:    "http://lb.example.com/",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, addressURL(tc.address)); diff != "" {
				t.Errorf("\n%s\naddressURL(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
