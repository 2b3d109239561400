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
func flow(protocol uint8, target, answers string) *netlink.ConntrackFlow {
	client := netip.MustParseAddrPort("10.244.0.7:40000")
	dst, src := netip.MustParseAddrPort(target), netip.MustParseAddrPort(answers)
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
			Ports: map[uint16][]netip.AddrPort{
				10000: {netip.MustParseAddrPort("100.64.0.9:53")},
				10002: {netip.MustParseAddrPort("100.64.0.9:53"), netip.MustParseAddrPort("[fd7a:115c:a1e0::9]:53")},
			},
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
		"Both4":       {reason: "A port has a target of each family.", flow: flow(unix.IPPROTO_UDP, "10.244.0.1:10002", "100.64.0.9:53")},
		"Both6":       {reason: "A port has a target of each family.", flow: flow(unix.IPPROTO_UDP, "[fd00::1]:10002", "[fd7a:115c:a1e0::9]:53")},
		"OldTarget6":  {reason: "A flow over IPv6 to an earlier target is deleted.", flow: flow(unix.IPPROTO_UDP, "[fd00::1]:10002", "[fd7a:115c:a1e0::8]:53"), want: true},
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

func TestOpen(t *testing.T) {
	tcp := func(state uint8, target, answers string) *netlink.ConntrackFlow {
		f := flow(unix.IPPROTO_TCP, target, answers)
		f.ProtoInfo = &netlink.ProtoInfoTCP{State: state}
		return f
	}
	forwarded := Forwarded{
		First: 10000, Last: 31999,
		Addresses: map[netip.Addr]bool{netip.MustParseAddr("100.100.0.1"): true},
	}
	cases := map[string]struct {
		reason string
		flow   *netlink.ConntrackFlow
		want   bool
	}{
		"Established": {reason: "A connection to a target is open.", flow: tcp(tcpEstablished, "10.244.0.1:10000", "100.64.0.9:5432"), want: true},
		"HalfClosed":  {reason: "A connection that one side has closed is open.", flow: tcp(tcpCloseWait, "10.244.0.1:10000", "100.64.0.9:5432"), want: true},
		"IPv6":        {reason: "Connections over IPv6 count.", flow: tcp(tcpEstablished, "[fd00::1]:10000", "[fd7a:115c:a1e0::9]:5432"), want: true},
		"Service":     {reason: "A connection to a service is open.", flow: tcp(tcpEstablished, "100.100.0.1:80", "10.96.0.1:80"), want: true},
		"TimeWait":    {reason: "A connection that both sides have closed is not open.", flow: tcp(7, "10.244.0.1:10000", "100.64.0.9:5432")},
		"Opening":     {reason: "A connection that is not answered yet carries nothing.", flow: tcp(1, "10.244.0.1:10000", "100.64.0.9:5432")},
		"OtherPort":   {reason: "Only ports of targets count.", flow: tcp(tcpEstablished, "10.244.0.1:9093", "100.64.0.9:5432")},
		"Own":         {reason: "A server in the pod is not forwarded to.", flow: tcp(tcpEstablished, "10.244.0.1:10000", "10.244.0.1:10000")},
		"Elsewhere":   {reason: "The pod's own connections to other hosts do not count.", flow: tcp(tcpEstablished, "203.0.113.1:10000", "203.0.113.2:10000")},
		"UDP":         {reason: "UDP has no connections.", flow: flow(unix.IPPROTO_UDP, "10.244.0.1:10000", "100.64.0.9:53")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := forwarded.open(tc.flow, pod().own); got != tc.want {
				t.Errorf("\n%s\nopen(...): want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}
