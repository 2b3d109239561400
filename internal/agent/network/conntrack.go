// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// Translations are what containerboot has the kernel do with packets of UDP that come to
// the pod.
type Translations struct {
	// Ports of the pod, and where they lead. It has all that lead anywhere.
	Ports map[uint16]netip.AddrPort

	// Addresses that the machine has for services, and where they lead.
	Addresses map[netip.Addr]netip.Addr
}

// ForgetUDP has the kernel forget each flow of UDP that goes elsewhere than the translations
// say, and returns how many there were. The kernel looks at rules for the first packet of a
// flow alone, and a flow lasts as long as packets come: a client that goes on would never
// reach a new target. It needs the capability NET_ADMIN. Connections of TCP are left: they
// end by themselves.
func ForgetUDP(t Translations) (uint, error) {
	own, err := net.InterfaceAddrs()
	if err != nil {
		return 0, errors.Wrap(err, "cannot list the pod's addresses")
	}
	f := flows{Translations: t, own: map[netip.Addr]bool{}}
	for _, a := range own {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			f.own[p.Addr().Unmap()] = true
		}
	}
	var n uint
	for _, family := range []netlink.InetFamily{unix.AF_INET, unix.AF_INET6} {
		deleted, err := netlink.ConntrackDeleteFilters(netlink.ConntrackTable, family, f)
		if err != nil {
			return n, errors.Wrap(err, "cannot have the kernel forget flows of UDP to earlier targets; the container needs the capability NET_ADMIN")
		}
		n += deleted
	}
	return n, nil
}

// flows that go elsewhere than they should.
type flows struct {
	Translations

	own map[netip.Addr]bool
}

// MatchConntrackFlow implements netlink.CustomConntrackFilter.
func (f flows) MatchConntrackFlow(c *netlink.ConntrackFlow) bool {
	if c.Forward.Protocol != unix.IPPROTO_UDP {
		return false
	}
	to, ok := netip.AddrFromSlice(c.Forward.DstIP)
	from, ok2 := netip.AddrFromSlice(c.Reverse.SrcIP)
	if !ok || !ok2 {
		return false
	}
	to, from = to.Unmap(), from.Unmap()
	if want, ok := f.Addresses[to]; ok {
		return from != want
	}
	if !f.own[to] {
		return false // The pod's own questions, to others.
	}
	// A flow may have begun before its port led anywhere.
	if want, ok := f.Ports[c.Forward.DstPort]; ok {
		return netip.AddrPortFrom(from, c.Reverse.SrcPort) != want
	}
	return from != to
}
