// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestIPFamily(t *testing.T) {
	type want struct {
		nodes    []netip.Addr
		services []netip.Prefix
		tailnet  string
		registry string
		pulled   string
		acme     string
		whoami   string
	}
	cases := map[string]struct {
		reason string
		family IPFamily
		want   want
	}{
		"Default": {
			reason: "A lab should have IPv4 by default.",
			want: want{
				nodes:    []netip.Addr{netip.MustParseAddr("10.64.0.1")},
				services: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")},
				tailnet:  "http://10.200.0.1",
				registry: "10.200.0.1:5000",
				pulled:   "10.200.0.1:5000",
				acme:     "https://10.200.0.1:14000/dir",
				whoami:   "10.200.0.200:8082",
			},
		},
		"Dual": {
			reason: "A dual-stack lab should have both families, IPv4 first.",
			family: Dual,
			want: want{
				nodes:    []netip.Addr{netip.MustParseAddr("10.64.0.1"), netip.MustParseAddr("fd10:64::1")},
				services: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16"), netip.MustParsePrefix("fd10:96::/112")},
				tailnet:  "http://10.200.0.1",
				registry: "10.200.0.1:5000",
				pulled:   "10.200.0.1:5000",
				acme:     "https://10.200.0.1:14000/dir",
				whoami:   "10.200.0.200:8082",
			},
		},
		"IPv6": {
			reason: "An IPv6-only cluster should reach only IPv6 addresses, and the registry's name in packages should make Crossplane use HTTP.",
			family: IPv6,
			want: want{
				nodes:    []netip.Addr{netip.MustParseAddr("fd10:64::1")},
				services: []netip.Prefix{netip.MustParsePrefix("fd10:96::/112")},
				tailnet:  "http://[fd10:200::1]",
				registry: "[fd10:200::1]:5000",
				pulled:   "registry.lab.localhost:5000",
				acme:     "https://[fd10:200::1]:14000/dir",
				whoami:   "[fd10:200::200]:8082",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			clusters, err := Clusters(1, tc.family)
			if err != nil {
				t.Fatal(err)
			}
			tailnets, err := Tailnets(1, tc.family)
			if err != nil {
				t.Fatal(err)
			}
			hub := tc.family.Hub()
			got := want{tailnet: tailnets[0].URL, registry: hub.Registry(), pulled: hub.RegistryInCluster(), acme: hub.ACMEDirectory(), whoami: hub.Whoami()}
			for _, n := range clusters[0].Networks() {
				got.nodes, got.services = append(got.nodes, n.Node), append(got.services, n.Services)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{}), cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
				t.Errorf("\n%s\nIPFamily(%q): -want, +got:\n%s", tc.reason, tc.family, diff)
			}
		})
	}
}
