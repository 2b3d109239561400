// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"net"
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// flow returns a flow from a client to an address, with answers from another address.
func flow(protocol uint8, to, answers string) *netlink.ConntrackFlow {
	client := netip.MustParseAddrPort("10.244.0.7:40000")
	dst, src := netip.MustParseAddrPort(to), netip.MustParseAddrPort(answers)
	family := uint8(unix.AF_INET)
	if dst.Addr().Is6() {
		family, client = unix.AF_INET6, netip.MustParseAddrPort("[fd00::7]:40000")
	}
	ip := func(a netip.AddrPort) net.IP { return a.Addr().AsSlice() }
	return &netlink.ConntrackFlow{
		FamilyType: family, TimeOut: 100,
		Forward: netlink.IPTuple{Protocol: protocol, SrcIP: ip(client), SrcPort: client.Port(), DstIP: ip(dst), DstPort: dst.Port()},
		Reverse: netlink.IPTuple{Protocol: protocol, SrcIP: ip(src), SrcPort: src.Port(), DstIP: ip(client), DstPort: client.Port()},
	}
}

// pod returns a pod's translations and addresses.
func pod() flows {
	return flows{
		Translations: Translations{
			Ports:     map[uint16]netip.AddrPort{10000: netip.MustParseAddrPort("100.64.0.9:53")},
			Addresses: map[netip.Addr]netip.Addr{netip.MustParseAddr("100.100.0.1"): netip.MustParseAddr("10.96.0.1")},
		},
		own: map[netip.Addr]bool{netip.MustParseAddr("10.244.0.1"): true, netip.MustParseAddr("fd00::1"): true},
	}
}

func TestMatchConntrackFlow(t *testing.T) {
	cases := map[string]struct {
		reason string
		flow   *netlink.ConntrackFlow
		want   bool
	}{
		"Target":      {reason: "A flow to its port's target is kept.", flow: flow(unix.IPPROTO_UDP, "10.244.0.1:10000", "100.64.0.9:53")},
		"OldTarget":   {reason: "A flow to an earlier target of the port is deleted.", flow: flow(unix.IPPROTO_UDP, "10.244.0.1:10000", "100.64.0.8:53"), want: true},
		"OldPort":     {reason: "A flow to an earlier port of the target is deleted.", flow: flow(unix.IPPROTO_UDP, "10.244.0.1:10000", "100.64.0.9:54"), want: true},
		"Early":       {reason: "A flow that began before the port had a target would never reach the target.", flow: flow(unix.IPPROTO_UDP, "10.244.0.1:10000", "10.244.0.1:10000"), want: true},
		"Gone":        {reason: "A flow of a port without a target is deleted.", flow: flow(unix.IPPROTO_UDP, "10.244.0.1:10001", "100.64.0.9:53"), want: true},
		"Gone6":       {reason: "A flow over IPv6 of a port without a target is deleted.", flow: flow(unix.IPPROTO_UDP, "[fd00::1]:10001", "[fd7a:115c:a1e0::9]:53"), want: true},
		"Own":         {reason: "A flow to a server in the pod is kept.", flow: flow(unix.IPPROTO_UDP, "10.244.0.1:41641", "10.244.0.1:41641")},
		"Elsewhere":   {reason: "A flow from the pod to another host is kept, whatever its port.", flow: flow(unix.IPPROTO_UDP, "203.0.113.1:10000", "203.0.113.1:10000")},
		"TCP":         {reason: "TCP connections are kept: they end by themselves.", flow: flow(unix.IPPROTO_TCP, "10.244.0.1:10000", "100.64.0.8:53")},
		"Service":     {reason: "A flow to a service's backend is kept.", flow: flow(unix.IPPROTO_UDP, "100.100.0.1:53", "10.96.0.1:53")},
		"OldService":  {reason: "A flow to an earlier backend is deleted.", flow: flow(unix.IPPROTO_UDP, "100.100.0.1:53", "10.96.0.2:53"), want: true},
		"Unparseable": {reason: "A flow without addresses is kept.", flow: &netlink.ConntrackFlow{Forward: netlink.IPTuple{Protocol: unix.IPPROTO_UDP}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := pod().MatchConntrackFlow(tc.flow); got != tc.want {
				t.Errorf("\n%s\nMatchConntrackFlow(...): want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}
