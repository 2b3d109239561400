// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"net/netip"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDERPMap(t *testing.T) {
	type want struct {
		ipv4, ipv6 string
	}
	cases := map[string]struct {
		reason string
		addr   string
		want   want
	}{
		"IPv4": {
			reason: "Nodes should use the relay by IPv4 alone.",
			addr:   "10.200.0.1",
			want:   want{ipv4: "10.200.0.1", ipv6: "none"},
		},
		"IPv6": {
			reason: "Nodes should use the relay by IPv6 alone.",
			addr:   "fd10:200::1",
			want:   want{ipv4: "none", ipv6: "fd10:200::1"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := derpMap(netip.MustParseAddr(tc.addr), 80, 3478)
			n := m.Regions[derpRegion].Nodes[0]
			if diff := cmp.Diff(tc.want, want{ipv4: n.IPv4, ipv6: n.IPv6}, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("\n%s\nderpMap(...): -want, +got:\n%s", tc.reason, diff)
			}
			// As tailscale.com makes URLs of it (net/netcheck, measureHTTPSLatency).
			if _, err := url.Parse("https://" + n.HostName + "/derp/probe"); err != nil {
				t.Errorf("\n%s\nderpMap(...): the name of the node gives no URL: %v", tc.reason, err)
			}
		})
	}
}
