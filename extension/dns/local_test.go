// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/internal/address"
)

func TestFamiliesOf(t *testing.T) {
	cases := map[string]struct {
		reason string
		addrs  []string
		want   address.Families
	}{
		"None": {
			reason: "A pod without a network should have no family.",
			addrs:  []string{"127.0.0.1/8", "::1/128"},
		},
		"IPv4": {
			reason: "Link-local IPv6, which each interface has, should not count.",
			addrs:  []string{"127.0.0.1/8", "::1/128", "10.64.0.7/16", "fe80::1/64"},
			want:   address.Families{IPv4: true},
		},
		"IPv6": {
			reason: "The loopback's IPv4, which each pod has, should not count.",
			addrs:  []string{"127.0.0.1/8", "::1/128", "fd10:64::7/64", "fe80::1/64"},
			want:   address.Families{IPv6: true},
		},
		"Both": {
			reason: "A pod of a dual-stack cluster should have both families.",
			addrs:  []string{"127.0.0.1/8", "10.64.0.7/16", "fd10:64::7/64"},
			want:   address.Families{IPv4: true, IPv6: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var addrs []net.Addr
			for _, s := range tc.addrs {
				ip, n, err := net.ParseCIDR(s)
				if err != nil {
					t.Fatal(err)
				}
				addrs = append(addrs, &net.IPNet{IP: ip, Mask: n.Mask})
			}
			if diff := cmp.Diff(tc.want, familiesOf(addrs)); diff != "" {
				t.Errorf("\n%s\nfamiliesOf(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
