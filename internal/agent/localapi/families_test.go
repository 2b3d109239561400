// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package localapi_test

import (
	"net/netip"
	"testing"

	"tailscale.com/ipn"
	"tailscale.com/tailcfg"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi/localapitest"
)

// TestFindFamily checks that an address stands for its device or its service: the kernel reaches
// one of them only by a family that the pod has.
func TestFindFamily(t *testing.T) {
	router := localapi.Device{Name: "router.example.ts.net", Addr: netip.MustParseAddr("100.64.0.2")}
	s := localapitest.New(t, func() {})
	s.Set(ipn.Running)
	s.SetPeers(
		localapitest.Peer(1, "db", nil, []string{"100.64.0.9", "fd7a:115c:a1e0::9"}, "100.100.0.1/32", "fd7a:115c:a1e0::6401/128"),
		localapitest.Peer(2, "router", nil, []string{"100.64.0.2"}, "10.1.0.0/16", "fd7a:115c:a1e0:b1a:0:7:a01:0/112"),
	)
	s.SetRecords(tailcfg.DNSRecord{Name: "web.example.ts.net.", Value: "100.100.0.1"}, tailcfg.DNSRecord{Name: "web.example.ts.net.", Value: "fd7a:115c:a1e0::6401"})
	peers, eventually := follow(t, s)
	eventually("Only a router has the address of a 4via6 name.", "10-1-1-2-via-7.example.ts.net", localapi.Host{RouteUnused: true})
	s.SetRoutes(true)
	eventually("A 4via6 name leads to the address that tailscaled computes.", "10-1-1-2-via-7.example.ts.net", host("fd7a:115c:a1e0:b1a:0:7:a01:102", router))
	eventually("A name without a domain does so, too.", "10-1-1-2-via-7", host("fd7a:115c:a1e0:b1a:0:7:a01:102", router))

	cases := map[string]struct {
		reason string
		host   string
		v4, v6 string
	}{
		"Name":        {reason: "A device has a name for both addresses.", host: "db", v4: "100.64.0.9", v6: "fd7a:115c:a1e0::9"},
		"Address":     {reason: "An address of a device stands for the other one.", host: "100.64.0.9", v4: "100.64.0.9", v6: "fd7a:115c:a1e0::9"},
		"Address6":    {reason: "So does the IPv6 address.", host: "fd7a:115c:a1e0::9", v4: "100.64.0.9", v6: "fd7a:115c:a1e0::9"},
		"Service":     {reason: "An address of a service stands for the other one.", host: "100.100.0.1", v4: "100.100.0.1", v6: "fd7a:115c:a1e0::6401"},
		"ServiceName": {reason: "A service has a name for both addresses.", host: "web", v4: "100.100.0.1", v6: "fd7a:115c:a1e0::6401"},
		"OneFamily":   {reason: "A device can have one address.", host: "router", v4: "100.64.0.2"},
		"Routed":      {reason: "A host behind a router has no other address.", host: "10.1.2.3", v4: "10.1.2.3"},
		"Via":         {reason: "A 4via6 address is IPv6.", host: "10-1-1-2-via-7", v6: "fd7a:115c:a1e0:b1a:0:7:a01:102"},
		"None":        {reason: "Nobody has a name that does not exist.", host: "nobody"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for ipv6, want := range map[bool]string{false: tc.v4, true: tc.v6} {
				addr, err := netip.ParseAddr(want)
				got := peers.FindFamily(tc.host, ipv6)
				if got.Addr != addr || (err == nil) != (len(got.Devices) > 0) {
					t.Errorf("\n%s\nFindFamily(%q, %t): want %s, got %+v", tc.reason, tc.host, ipv6, want, got)
				}
			}
		})
	}
}
